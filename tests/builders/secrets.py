"""What of a store is secret, and whether a text that others may read gives any of it away."""

from __future__ import annotations

import base64
import json
from typing import Any

from protokube.store import Store

PRIVATE, KEY, SECRETS = "/pki/private/", ".key", "/secrets/"
"""Beside each private key there is a list of all, which holds them in base64."""
PUBLIC = ("name", "algorithm", "apiVersion", "kind")
"""Parts of a key for updates, or of a configuration with keys, that are no secret."""
SHORTEST = 8
"""Letters; what is shorter may be anywhere by chance."""


def secrets_of(store: Store, cluster: str) -> dict[str, set[str]]:
    """By path: texts of which each alone must be nowhere else."""
    found = [path for path in store.list_paths(cluster) if SECRETS in path or (PRIVATE in path and path.endswith(KEY))]
    return {path: texts(store.read(path).data) for path in found}


def texts(data: bytes) -> set[str]:
    """As it is, line by line; what JSON holds, value by value; and all of it once more in base64."""
    text = data.decode()
    try:
        lines = list(values(json.loads(text)))
    except ValueError:
        lines = [line.strip() for line in text.splitlines() if not line.startswith("-----")]
    found = {line for line in lines if len(line) >= SHORTEST}
    return found | {base64.b64encode(data).decode()}


def values(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        return [each for name, value in tree.items() if name not in PUBLIC for each in values(value)]
    if isinstance(tree, list):
        return [each for value in tree for each in values(value)]
    return [str(tree)]


def given_away(store: Store, cluster: str, text: str) -> list[str]:
    """The paths of secrets of which a part is in the text."""
    return [path for path, parts in secrets_of(store, cluster).items() if any(part in text for part in parts)]
