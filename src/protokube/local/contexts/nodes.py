"""PyYAML's graph of nodes: small helpers, so that `document` reads as what it does.

A node that we change is replaced and not modified in place: an alias may use it in somebody else's entry, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeGuard

from protokube import fast_yaml
from protokube.errors import Refused

if TYPE_CHECKING:
    from yaml import MappingNode, Node, SequenceNode

MOST_NODES = 200_000
"""Aliases can make a small file huge."""
STR, MAP, SEQ, NULL = (f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq", "null"))


class Plain:
    """Nodes as strings, lists and dicts. Scalars stay text, whatever YAML makes of it; null is None."""

    def __init__(self, path: str) -> None:
        self._path, self._seen = path, 0

    def __call__(self, node: Node | None, depth: int = 0) -> Any:
        self._seen += 1
        if self._seen > MOST_NODES:
            raise unusable(self._path, f"it has more than {MOST_NODES} values")
        if depth > fast_yaml.DEEPEST:
            raise unusable(self._path, "an alias in it refers to itself")
        if node is None or node.tag == NULL:
            return None
        if is_mapping(node):
            return {self._name(key): self(value, depth + 1) for key, value in node.value}
        return [self(each, depth + 1) for each in node.value] if is_list(node) else str(node.value)

    def _name(self, key: Node) -> str:
        if not isinstance(key.value, str):
            raise unusable(self._path, "a field in it has no name")
        return key.value


def compose(path: str, data: bytes) -> MappingNode | None:
    """The only document; None if there is nothing in it."""
    import yaml

    try:
        text = data.decode("utf-8-sig")
        fast_yaml.check_depth(text)
        root: Node | None = yaml.compose(text, Loader=fast_yaml.loader())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise unusable(path, " ".join(str(error).split())) from error
    if root is None or root.tag == NULL:
        return None
    if not is_mapping(root):
        raise unusable(path, "it is not a mapping")
    return root


def serialize(path: str, root: MappingNode) -> bytes:
    import yaml

    try:  # no line is folded: a folded one in quotes is no JSON any more
        written = yaml.serialize(root, Dumper=fast_yaml.dumper(), width=1 << 30, allow_unicode=True)
        return str(written).encode()
    except (yaml.YAMLError, ValueError) as error:  # such as half a surrogate pair, which YAML can name
        raise unusable(path, " ".join(str(error).split())) from error


def is_mapping(node: Node | None) -> TypeGuard[MappingNode]:
    import yaml

    return isinstance(node, yaml.MappingNode)


def is_list(node: Node | None) -> TypeGuard[SequenceNode]:
    import yaml

    return isinstance(node, yaml.SequenceNode)


def get(node: Node | None, name: str) -> Any:
    """The value of a field; of one that is there twice the last, as Go has it."""
    if not is_mapping(node):
        return None
    return next((value for key, value in reversed(node.value) if key.value == name), None)


def put(node: MappingNode, name: str, value: Node, *, quoted: bool) -> None:
    for at, (key, _) in reversed(list(enumerate(node.value))):
        if key.value == name:
            node.value[at] = (key, value)
            return
    node.value.append((text(name, quoted=quoted), value))


def text(value: str, *, quoted: bool) -> Node:
    import yaml

    return yaml.ScalarNode(STR, value, style='"' if quoted else None)


def mapping(fields: Iterable[tuple[Node, Node]], *, flow: bool) -> MappingNode:
    import yaml

    return yaml.MappingNode(MAP, list(fields), flow_style=flow)


def sequence(items: Iterable[Node], *, flow: bool) -> SequenceNode:
    import yaml

    return yaml.SequenceNode(SEQ, list(items), flow_style=flow)


def unusable(path: str, saw: str) -> Refused:
    return Refused(f"{path} is not a kubeconfig that protokube can change", saw=saw)
