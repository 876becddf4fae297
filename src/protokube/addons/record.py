"""The record of the objects that protokube applied to a cluster: the ConfigMap `protokube-addons`.

Only objects that it lists may be pruned. If it is lost or invalid, nothing may be pruned, and it is rewritten from the
wanted set. Its number is that of the newest set that any agent began to apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from protokube.addons.value import Addon, Ref, Tree

NAMESPACE, NAME = "kube-system", "protokube-addons"
FOLDER = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PATH = f"{FOLDER}/{NAME}"
ENTRY, NUMBER = ".json", "protokube.io/addons-number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One add-on as it was last applied."""

    digest: str
    refs: tuple[Ref, ...]


Record = Mapping[str, Recorded]
"""By the name of the add-on."""


def of_addon(addon: Addon, also: tuple[Ref, ...] = ()) -> Recorded:
    return Recorded(digest=addon.digest, refs=tuple(dict.fromkeys((*addon.refs, *also))))


def empty() -> Tree:
    """The ConfigMap to create. Its data is applied afterwards: server-side apply does not remove created fields."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}}


def to_tree(record: Record, number: int = 0, seen: str = "") -> Tree:
    """The ConfigMap to apply; `seen` is the resourceVersion that was read, so that of two writers one fails."""
    tree = empty()
    tree["metadata"]["annotations"] = {NUMBER: str(number)}
    if seen:
        tree["metadata"]["resourceVersion"] = seen
    return tree | {"data": {f"{name}{ENTRY}": _entry(each) for name, each in record.items()}}


def _entry(recorded: Recorded) -> str:
    refs = [[each.group, each.kind, each.namespace, each.name] for each in recorded.refs]
    return json.dumps({"digest": recorded.digest, "objects": refs})


def from_tree(tree: Tree | None) -> Record:
    """The readable entries; none if its number is invalid."""
    data: Any = (tree or {}).get("data") or {}
    if _number(tree) is None:
        return {}
    read = {name.removesuffix(ENTRY): _read(text) for name, text in data.items()}
    return {name: each for name, each in read.items() if each is not None}


def number_of(tree: Tree | None) -> int:
    """The number of the set; 0 if the record is missing, invalid, or older than the numbering."""
    return _number(tree) or 0


def _number(tree: Tree | None) -> int | None:
    text = str((((tree or {}).get("metadata") or {}).get("annotations") or {}).get(NUMBER, "0"))
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _read(text: Any) -> Recorded | None:
    try:
        document = json.loads(text)
    except (ValueError, TypeError):
        return None
    match document:
        case {"digest": str(digest), "objects": list(objects)} if all(_is_ref(each) for each in objects):
            return Recorded(digest=digest, refs=tuple(Ref(*each) for each in objects))
        case _:
            return None


def _is_ref(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(isinstance(part, str) for part in value)
