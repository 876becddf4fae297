"""Plan which objects to apply and which to prune, from the wanted set, our record, and what exists.

An object is pruned only if our record lists it *and* it still has the label of that add-on: the record alone may be
old, the label alone may have been copied. Kinds that hold data are never pruned, only reported. An object that exists
but is neither recorded nor labelled is foreign, whatever its name, and is left unchanged.

An object that could not be read is not changed, and while there is one nothing is pruned: it may be the same object as
another that looks like a leftover.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from protokube.addons.record import Record, Recorded, of_addon
from protokube.addons.value import Addon, Ref, Tree, label_of

HOLDS_DATA = frozenset(
    {
        ("", "Namespace"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)
"""Deleting one of these deletes the data or objects in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """An object to delete, bound to its UID: a new object with the same name is not deleted."""

    ref: Ref
    addon: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """An object that is left unchanged, and why."""

    ref: Ref
    addon: str
    why: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonPlan:
    """Steps in this order: write the record of old and new objects, apply, prune, write the record of what is left."""

    during: Record
    apply: tuple[tuple[str, Tree], ...]
    """Name of the add-on, and the object."""
    prune: tuple[Prune, ...]
    left: tuple[Left, ...]
    after: Record


def to_look_at(wanted: Sequence[Addon], record: Record) -> tuple[Ref, ...]:
    """Every object that the plan has to read."""
    refs = [each for addon in wanted for each in addon.refs]
    refs += [each for recorded in record.values() for each in recorded.refs]
    return tuple(dict.fromkeys(refs))


def plan(
    wanted: Sequence[Addon],
    record: Record,
    exists: Mapping[Ref, Tree],
    *,
    unseen: Collection[Ref] = (),
    takes_away: bool = True,
) -> AddonPlan:
    """Of the objects from `to_look_at`, `exists` has those that exist, `unseen` those that could not be read."""
    apply, foreign = _wanted(wanted, record, exists, unseen)
    prune, data = _leftovers(wanted, record, exists)
    after = _after(wanted, {*unseen, *(each.ref for each in foreign)}, data)
    during = _both(after, record)
    if unseen or not takes_away:
        prune, after = [], during
    return AddonPlan(during=during, apply=tuple(apply), prune=tuple(prune), left=(*foreign, *data), after=after)


def _wanted(
    wanted: Sequence[Addon], record: Record, exists: Mapping[Ref, Tree], unseen: Collection[Ref]
) -> tuple[list[tuple[str, Tree]], list[Left]]:
    recorded = {each for entry in record.values() for each in entry.refs}
    apply: list[tuple[str, Tree]] = []
    foreign: list[Left] = []
    for addon in wanted:
        for which, tree in zip(addon.refs, addon.labelled(), strict=True):
            if which in unseen:
                continue
            if which not in exists or which in recorded or label_of(exists[which]):
                apply.append((addon.name, tree))
            else:
                foreign.append(_foreign(addon.name, which))
    return apply, foreign


def _leftovers(wanted: Sequence[Addon], record: Record, exists: Mapping[Ref, Tree]) -> tuple[list[Prune], list[Left]]:
    keep = {each for addon in wanted for each in addon.refs}
    # one object may have two refs: in two API groups, or with and without an explicit namespace
    kept_uids = {uid_of(exists[each]) for each in keep if each in exists}
    prune: list[Prune] = []
    data: list[Left] = []
    for name, recorded in record.items():
        for which in reversed(recorded.refs):
            there = exists.get(which)
            if which in keep or there is None or label_of(there) != name or uid_of(there) in kept_uids:
                continue  # wanted, gone, or no longer ours
            if (which.group, which.kind) in HOLDS_DATA:
                data.append(_data(name, which))
            else:
                prune.append(Prune(ref=which, addon=name, uid=uid_of(there)))
    return prune, data


def _after(wanted: Sequence[Addon], others: Collection[Ref], data: Sequence[Left]) -> Record:
    """The wanted objects that are ours, and objects that may hold data: these are reported until a person decides."""
    found = {each.addon: Recorded(digest="", refs=()) for each in data}
    found |= {addon.name: of_addon(addon) for addon in wanted}
    return {
        name: Recorded(
            digest=entry.digest,
            refs=(
                *(each for each in entry.refs if each not in others),
                *(each.ref for each in reversed(data) if each.addon == name),
            ),
        )
        for name, entry in found.items()
    }


def _both(after: Record, before: Record) -> Record:
    """The record during the change, old and new objects: an agent that is killed leaves no unrecorded object."""
    found = dict(before)
    for name, entry in after.items():
        known = before[name].refs if name in before else ()
        found[name] = Recorded(digest=entry.digest, refs=tuple(dict.fromkeys((*entry.refs, *known))))
    return found


def uid_of(tree: Tree) -> str:
    return str((tree.get("metadata") or {}).get("uid", ""))


def _foreign(addon: str, which: Ref) -> Left:
    return Left(
        ref=which, addon=addon, why="exists already, and is not ours: it stays as it is",
        hint=f"give it the label protokube.io/addon={addon} to hand it over, or delete it",
    )  # fmt: skip


def _data(addon: str, which: Ref) -> Left:
    return Left(
        ref=which, addon=addon, why="is no longer wanted, but may hold data: it stays",
        hint="delete it yourself once nobody needs what is in it, or take its label protokube.io/addon away",
    )  # fmt: skip
