"""The user's own add-ons: `addons` of the spec, each an inline manifest or the URL of one.

Invalid manifests are reported before anything is applied: one without a kind or a name would stop the agent on every
master, long after the spec was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from protokube.addons.value import Addon, Tree
from protokube.errors import InvalidRequest
from protokube.spec.plain import plain_documents

BUILT_IN = ("rbac", "cluster-dns")
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""The name is used as a label value."""

Read = Callable[[str], str]


def own_addons(entries: Sequence[Mapping[str, Any]], read: Read) -> tuple[Addon, ...]:
    """The add-ons in the user's order; `read` returns the text at a URL."""
    found: dict[str, Addon] = {}
    for index, each in enumerate(entries):
        addon = _addon(each, f"addons[{index}]", read)
        if addon.name in found or addon.name in BUILT_IN:
            raise InvalidRequest(
                f"addons[{index}]: there is an add-on {addon.name!r} already", hint="give it a `name` of its own"
            )
        found[addon.name] = addon
    return tuple(found.values())


def _addon(entry: Mapping[str, Any], place: str, read: Read) -> Addon:
    if unknown := sorted(set(entry) - {"name", "manifest"}):
        raise InvalidRequest(f"{place}: unknown field {', '.join(unknown)}", want="name, manifest")
    manifest = entry.get("manifest")
    if not isinstance(manifest, str) or not manifest.strip():
        raise InvalidRequest(f"{place} has no manifest", want="`manifest`: its text, or its URL or path")
    inline = "\n" in manifest.strip()
    name = str(entry.get("name") or (f"own-{place[7:-1]}" if inline else _base(manifest)))
    if not NAME.fullmatch(name):
        raise InvalidRequest(
            f"{place}: {name!r} is not a name for an add-on", want="lower-case letters, digits, - and ., at most 63",
            hint="set `name`",
        )  # fmt: skip
    text = manifest if inline else read(manifest)
    return Addon(name=name, objects=tuple(_objects(text, f"{place} ({name})")))


def _base(url: str) -> str:
    return PurePosixPath(url).name.rpartition(".")[0].lower() or PurePosixPath(url).name.lower()


def _objects(text: str, place: str) -> list[Tree]:
    found: list[Tree] = []
    for document in plain_documents([(place, text)]):
        items = document.get("items") if document.get("kind") == "List" else None
        parts = items if isinstance(items, list) else [document]
        found += [_checked(each, place) for each in parts if each]  # a document may be empty
    return found


def _checked(tree: Any, place: str) -> Tree:
    match tree:
        case {"apiVersion": str(), "kind": "Addons"}:
            raise InvalidRequest(
                f"{place} is a channel of kops: a list of other manifests", hint="give the manifests themselves"
            )
        case {"apiVersion": str(), "kind": str(), "metadata": {"name": str(), **metadata}} if isinstance(
            metadata.get("labels") or {}, dict
        ):
            return dict(tree)
        case _:
            raise InvalidRequest(
                f"{place}: an object cannot be applied", saw=str(tree)[:80], want="apiVersion, kind and metadata.name"
            )
