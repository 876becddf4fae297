"""Read the pod's namespace and name from a manifest that is not ours, as the kubelet would.

The file may hold anything. So scalars are read as plain strings, whatever their YAML tags.
"""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protokube import fast_yaml

if TYPE_CHECKING:
    from yaml.nodes import Node

LARGEST = 1 << 18
"""Largest file in bytes: parsed within a fraction of a second; a manifest is a hundredth of it."""
NULL, MERGE = "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"


class NoPod(Exception):
    """The file cannot be read as a pod; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a file when it was last read, and its stat fields then."""

    stamp: tuple[int, ...]
    pod: str = ""
    """`NAMESPACE/NAME`; "" if it is not a pod."""
    problem: str = ""


def read(path: Path, known: Reading | None) -> Reading:
    """Follows links; does not read an unchanged file again. FileNotFoundError for a dangling link."""
    # O_NONBLOCK: do not wait for the writer of a FIFO
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
    """NAMESPACE/NAME of the first document: the kubelet reads no further."""
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
    import yaml  # lazily: on most masters every manifest is ours, and none is parsed

    try:
        fast_yaml.check_depth(text)
        loader = fast_yaml.loader()(text)
        try:
            root: Node | None = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
    except fast_yaml.TooDeep as error:
        raise NoPod(f"it is {error}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter two for invalid code points
        raise NoPod("it is not YAML") from error
    return root


def _field(node: Node | None, name: str) -> Node | None:
    """The value of a key in a mapping; merged-in mappings (`<<`) count where it lacks the key."""
    from yaml.nodes import MappingNode, ScalarNode, SequenceNode

    ahead, seen = deque([node] if isinstance(node, MappingNode) else []), set[int]()
    while ahead:
        each = ahead.popleft()
        if id(each) in seen:  # a mapping may merge itself
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
