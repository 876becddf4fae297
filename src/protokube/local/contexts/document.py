"""A kubeconfig's text: read as values, and changed by edits.

Entries of others must keep their exact meaning, so nothing is loaded into Python's types and written again: `on`, a
date or a tag would not survive that. The edits are made in PyYAML's graph of nodes, which keeps tags, quotes and the
order of fields. Comments are lost where something changes, as by kubectl itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from protokube.local.contexts import nodes
from protokube.local.contexts.values import BODY, EXTENSION, Current, Drop, Edit, Entry, Kubeconfig, Mark, Put

if TYPE_CHECKING:
    from yaml import MappingNode, Node

CURRENT = "current-context"
TEXT = re.compile(r"[A-Za-z][\w.@:/-]{2,}")
"""What is text without quotes to Go, too, if it is to PyYAML: `y` and `12e3` are not."""
HEADER = {"apiVersion": "v1", "kind": "Config"}


def read(path: str, data: bytes | None) -> Kubeconfig:
    """Refused for what is no kubeconfig, or not one that we can change."""
    if data is None:
        return Kubeconfig(path=path, exists=False)
    root, plain = _root(path, data), nodes.Plain(path)
    entries = {section: tuple(_entries(root, section, plain)) for section in BODY}
    current = plain(nodes.get(root, CURRENT))
    if not isinstance(current, str | None):
        raise nodes.unusable(path, f"its {CURRENT} is not a name")
    return Kubeconfig(path=path, entries=entries, current=current or "")


def edited(path: str, data: bytes | None, edits: Sequence[Edit]) -> bytes:
    """The text after the edits of this file. Refused if it would not have everything of others, as it was."""
    root = _root(path, data or b"")
    others = _others(root, nodes.Plain(path))
    for edit in edits:
        match edit:
            case Current(name=name):
                json_like = bool(root.flow_style)
                value = nodes.text(name, quoted=json_like or not TEXT.fullmatch(name))
                nodes.put(root, CURRENT, value, quoted=json_like)
            case Drop(section=section, name=name):
                _put_list(root, section, [each for each in _items(root, section) if not _is_ours(each, section, name)])
            case Put():
                _put_entry(root, edit)
    written = nodes.serialize(path, root)
    if _others(_root(path, written), nodes.Plain(path)) != others:
        raise nodes.unusable(path, "an entry of somebody else would change")
    return written


def _root(path: str, data: bytes) -> MappingNode:
    root = nodes.compose(path, data)
    if root is None:
        named = {name: nodes.text(value, quoted=False) for name, value in HEADER.items()}
        return nodes.mapping([(nodes.text(name, quoted=False), value) for name, value in named.items()], flow=False)
    for name, wanted in HEADER.items():
        found = nodes.get(root, name)
        if found is not None and found.value not in (wanted, ""):
            raise nodes.unusable(path, f"its {name} is not {wanted}")
    for section in BODY:
        listed = nodes.get(root, section)
        if listed is not None and listed.tag != nodes.NULL and not nodes.is_list(listed):
            raise nodes.unusable(path, f"its {section} are not a list")
    return root


def _others(root: MappingNode, plain: nodes.Plain) -> dict[str, Any]:
    """Everything in a file but our entries and what we may set."""
    others = {name: value for name, value in plain(root).items() if name not in (*BODY, *HEADER, CURRENT)}
    for section in BODY:
        others[section] = [plain(each) for each in _items(root, section) if not _has_mark(each, section)]
    return others


def _items(root: MappingNode, section: str) -> list[Node]:
    listed = nodes.get(root, section)
    return list(listed.value) if nodes.is_list(listed) else []


def _entries(root: MappingNode, section: str, plain: nodes.Plain) -> Iterator[Entry]:
    for item in _items(root, section):
        tree = plain(item)
        if isinstance(tree, Mapping) and isinstance(name := tree.get("name"), str):
            body = tree.get(BODY[section])
            body = body if isinstance(body, Mapping) else {}
            yield Entry(name=name, body=body, mark=_mark(body))


def _mark(body: Mapping[str, Any]) -> Mark | None:
    listed = body.get("extensions")
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, Mapping) and each.get("name") == EXTENSION:
            return Mark.from_tree(each.get("extension"))
    return None


def _is_ours(item: Node, section: str, name: str) -> bool:
    """Whether an entry has this name and our mark. Checked again here, so that no plan can remove another one."""
    found = nodes.get(item, "name")
    return found is not None and found.value == name and _has_mark(item, section)


def _has_mark(item: Node, section: str) -> bool:
    extensions = nodes.get(nodes.get(item, BODY[section]), "extensions")
    return nodes.is_list(extensions) and any(_is_mark(each) for each in extensions.value)


def _is_mark(extension: Node) -> bool:
    name = nodes.get(extension, "name")
    return name is not None and name.value == EXTENSION


def _put_list(root: MappingNode, section: str, items: Sequence[Node]) -> None:
    flow, listed = bool(root.flow_style), nodes.get(root, section)
    if nodes.is_list(listed) and listed.value:
        flow = bool(listed.flow_style)
    nodes.put(root, section, nodes.sequence(items, flow=flow or not items), quoted=bool(root.flow_style))


def _put_entry(root: MappingNode, edit: Put) -> None:
    items, json_like = _items(root, edit.section), bool(root.flow_style)
    at = next((at for at, each in enumerate(items) if _is_ours(each, edit.section, edit.name)), None)
    before: Node | None = None if at is None else nodes.get(items[at], BODY[edit.section])
    body = nodes.mapping(
        [field for field in (before.value if nodes.is_mapping(before) else []) if field[0].value not in edit.without],
        flow=json_like,
    )
    for name, value in edit.fields.items():
        nodes.put(body, name, nodes.text(value, quoted=json_like), quoted=json_like)
    extensions = nodes.get(body, "extensions")
    others = [each for each in extensions.value if not _is_mark(each)] if nodes.is_list(extensions) else []
    mark = _mapping({"name": EXTENSION, "extension": edit.mark.to_tree()}, flow=json_like)
    nodes.put(body, "extensions", nodes.sequence([*others, mark], flow=json_like), quoted=json_like)
    item = _mapping({"name": edit.name}, flow=json_like)
    if at is not None:
        item.value = list(items[at].value)
    nodes.put(item, BODY[edit.section], body, quoted=json_like)
    items = [*items[:at], item, *items[at + 1 :]] if at is not None else [*items, item]
    _put_list(root, edit.section, items)


def _mapping(tree: Mapping[str, Any], *, flow: bool) -> MappingNode:
    """With all values in quotes: what is text to us (`y`, `12e3`) may be something else to Go."""
    fields = []
    for name, value in tree.items():
        node = _mapping(value, flow=flow) if isinstance(value, Mapping) else nodes.text(value, quoted=True)
        fields.append((nodes.text(name, quoted=flow), node))
    return nodes.mapping(fields, flow=flow)
