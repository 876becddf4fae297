"""The differences of two configurations as a person wants to read them. Pure.

Flags and files follow from settings, so they are left out. An item that is added or removed, such as an etcd member, is
one difference, not one for each of its fields. Values that are derived from other changed values are marked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from protokube.config.complete import Config
from protokube.config.diff import Difference, Side
from protokube.config.why import fields, reason
from protokube.spec.decode import Tree, join
from protokube.spec.parse import GROUPS


def changed_values(old: Config, new: Config, found: Sequence[Difference]) -> tuple[list[Difference], frozenset[str]]:
    """The differences of the cluster and its groups, or of flags and files if there are no others.

    Also the paths of those that only complete an item which the user added.
    """
    known = fields(old).keys() | fields(new).keys()
    values = [each for each in found if each.path in known]
    completed: set[str] = set()
    for item in _one_sided(old, new):
        inside = [each.path for each in values if related(each.path, item.path)]
        by_user = {path for path in inside if item.right.present and _is_set_by_user(new, path)}
        if len(inside) > 1 and not by_user:
            values = [item if each.path == inside[0] else each for each in values if each.path not in inside[1:]]
        elif len(inside) > 1:
            completed |= set(inside) - by_user
    return _without_empty(values) or list(found), frozenset(completed)


def _is_set_by_user(config: Config, path: str) -> bool:
    return path in config.ledger.places and path not in config.ledger.origins


def _one_sided(old: Config, new: Config) -> Iterator[Difference]:
    """Every item that only one of them has, as a whole."""
    yield from _walk("", {**old.cluster, GROUPS: old.groups}, {**new.cluster, GROUPS: new.groups}, (old, new))


def _walk(path: str, left: Tree, right: Tree, sides: tuple[Config, Config]) -> Iterator[Difference]:
    for name in dict.fromkeys((*left, *right)):
        here = join(path, name)
        values = (left.get(name), right.get(name))
        if all(isinstance(each, dict) and each for each in values):
            yield from _walk(here, left[name], right[name], sides)
        elif (name in left) != (name in right) and any(isinstance(each, dict) and each for each in values):
            pairs = zip(sides, (left, right), strict=True)
            yield Difference(here, *(_side(config, here, tree, name) for config, tree in pairs))


def _side(config: Config, path: str, tree: Tree, name: str) -> Side:
    if name not in tree:
        return Side(None, "", present=False)
    return Side(tree[name], reason(config, fields(config), path, steps=2))


def _without_empty(found: Sequence[Difference]) -> list[Difference]:
    """Without a mapping that is empty on one side and has fields on the other: the fields are listed."""
    paths = [each.path for each in found]

    def is_filled(each: Difference) -> bool:
        sides = (each.left, each.right)
        empty = any(side.present and side.value == {} for side in sides) and not all(side.present for side in sides)
        return empty and any(path.startswith(f"{each.path}.") for path in paths)

    return [each for each in found if not is_filled(each)]


def derived(old: Config, new: Config, changed: Collection[str]) -> frozenset[str]:
    """Of the changed paths, those whose values are derived from another of them."""
    present = {path[:end] for path in fields(new) for end in (*_dots(path), len(path))}

    def follows(path: str) -> bool:
        origin = (new if path in present else old).ledger.origin(path)
        of = origin.of if origin and origin.kind == "derived" else ()
        return any(related(each, source) for source in of for each in changed if each != path)

    return frozenset(path for path in changed if follows(path))


def _dots(path: str) -> list[int]:
    return [index for index, sign in enumerate(path) if sign == "."]


def related(one: str, other: str) -> bool:
    """Whether one path is the other, or is inside it."""
    return one == other or one.startswith((f"{other}.", f"{other}[")) or other.startswith((f"{one}.", f"{one}["))
