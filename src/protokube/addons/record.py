"""What we put into a cluster, as it says itself: the ConfigMap `protokube-addons`.

It only ever allows: what it does not list is never taken away. One that was lost or spoilt allows nothing, and is
written anew from what is wanted. Its number is that of the newest set that anybody began to apply.
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
    """To be created. The content is applied to it: what was created with an object does not go when it is left out."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}}


def to_tree(record: Record, number: int = 0, seen: str = "") -> Tree:
    """To be applied; `seen` is the version of the object that was read, so that two writers cannot both be right."""
    tree = empty()
    tree["metadata"]["annotations"] = {NUMBER: str(number)}
    if seen:
        tree["metadata"]["resourceVersion"] = seen
    return tree | {"data": {f"{name}{ENTRY}": _entry(each) for name, each in record.items()}}


def _entry(recorded: Recorded) -> str:
    refs = [[each.group, each.kind, each.namespace, each.name] for each in recorded.refs]
    return json.dumps({"digest": recorded.digest, "objects": refs})


def from_tree(tree: Tree | None) -> Record:
    """What can be read of it; nothing if nobody can say how new it is."""
    data: Any = (tree or {}).get("data") or {}
    if _number(tree) is None:
        return {}
    read = {name.removesuffix(ENTRY): _read(text) for name, text in data.items()}
    return {name: each for name, each in read.items() if each is not None}


def number_of(tree: Tree | None) -> int:
    """0 for one that is not there, that was written before they were numbered, or that is spoilt."""
    return _number(tree) or 0


def _number(tree: Tree | None) -> int | None:
    told = str((((tree or {}).get("metadata") or {}).get("annotations") or {}).get(NUMBER, "0"))
    return int(told) if re.fullmatch(r"[0-9]{1,18}", told) else None


def _read(text: Any) -> Recorded | None:
    try:
        told = json.loads(text)
    except (ValueError, TypeError):
        return None
    match told:
        case {"digest": str(digest), "objects": list(objects)} if all(_is_ref(each) for each in objects):
            return Recorded(digest=digest, refs=tuple(Ref(*each) for each in objects))
        case _:
            return None


def _is_ref(told: Any) -> bool:
    return isinstance(told, list) and len(told) == 4 and all(isinstance(part, str) for part in told)
