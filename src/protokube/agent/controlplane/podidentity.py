"""Which pod a manifest of somebody else names, as the kubelet would read it.

The file may hold anything. So nothing is made of its values but words, whatever their tags say they are, and what is
nested deeply is not followed: the parser of YAML that is written in C ends the whole process there.
"""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml.events import Event
    from yaml.nodes import Node

LARGEST = 1 << 18
"""Bytes that are read within a fraction of a second; a manifest has a hundredth of it."""
DEEPEST = 100
NULL, MERGE = "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"


class NoPod(Exception):
    """It cannot be read as a pod; the message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file said when it was last read, and what it was then."""

    stamp: tuple[int, ...]
    pod: str = ""
    """`NAMESPACE/NAME`; "" if it is no pod."""
    problem: str = ""


def read(path: Path, known: Reading | None) -> Reading:
    """Links are followed; a file that is the same as before is not read. FileNotFoundError if it leads nowhere."""
    # not to wait for whoever writes into a pipe that has the name of a manifest
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if known is not None and known.stamp == stamp:
            return known
        try:
            if not stat.S_ISREG(status.st_mode):
                raise NoPod("it is no file")
            content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise NoPod(f"it is larger than {LARGEST} bytes")
            return Reading(stamp, identity(content))
        except NoPod as why:
            return Reading(stamp, problem=str(why))


def identity(content: bytes) -> str:
    """Of the first document: the kubelet reads no further."""
    tree = _first(content)
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or tree.get("kind") != "Pod" or not isinstance(metadata, dict):
        raise NoPod("it is no pod")
    if metadata.get("name") in (None, ""):
        raise NoPod("its pod has no name")
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def _first(content: bytes) -> Any:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoPod("it is not UTF-8") from error
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise NoPod("it is not JSON") from error
    root = _root(text)
    fields: dict[str, Any] = {name: _field(root, name) for name in ("kind", "metadata")}
    named = {name: _scalar(_field(fields["metadata"], name)) for name in ("namespace", "name")}
    return {"kind": _scalar(fields["kind"]), "metadata": named if fields["metadata"] is not None else None}


def _root(text: str) -> Node | None:
    import yaml  # on most masters every manifest is ours, and none is read

    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(yaml.parse(text, Loader=kind))
        loader = kind(text)
        try:
            root: Node | None = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter two are of characters that there are not
        raise NoPod("it is not YAML") from error
    return root


def _check_depth(events: Iterable[Event]) -> None:
    """Of the first document, one event after the other: whoever makes nodes of them calls itself for each level."""
    from yaml import CollectionEndEvent, CollectionStartEvent, DocumentEndEvent

    depth = 0
    for event in events:
        if isinstance(event, DocumentEndEvent):
            return
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise NoPod(f"it is nested more than {DEEPEST} levels deep")


def _field(node: Node | None, name: str) -> Node | None:
    """What a mapping has by this name; what it merges in counts where it says nothing itself."""
    from yaml.nodes import MappingNode, ScalarNode, SequenceNode

    ahead, seen = deque([node] if isinstance(node, MappingNode) else []), set[int]()
    while ahead:
        each = ahead.popleft()
        if id(each) in seen:  # it may merge in itself
            continue
        seen.add(id(each))
        if isinstance(each, SequenceNode):
            ahead.extendleft(reversed(each.value))
        elif isinstance(each, MappingNode):
            pairs = [(key, value) for key, value in each.value if isinstance(key, ScalarNode)]
            own: list[Node] = [value for key, value in pairs if key.value == name and key.tag != MERGE]
            if own:
                return own[-1]
            ahead.extendleft(reversed([value for key, value in pairs if key.tag == MERGE]))
    return None


def _scalar(node: Node | None) -> str | None:
    from yaml.nodes import ScalarNode

    return str(node.value) if isinstance(node, ScalarNode) and node.tag != NULL else None
