"""What the cluster gets once its API answers: applied, kept as it should be, and taken away when nobody wants it.

The order makes it safe to be killed anywhere: first the record of all there will be, then the objects, then what goes,
then the record of what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from protokube.addons import record as records
from protokube.addons.plan import AddonPlan, plan, to_look_at
from protokube.addons.record import Record
from protokube.addons.value import Addon, Ref, Tree, ref, said_by
from protokube.agent.world import Kube, Turn
from protokube.kube.client import ApiError
from protokube.kube.resources import Resources, UnknownKind
from protokube.store.addons import read_addons

STEP, MANAGER = "addons", "protokube"
EVERY, AGAIN = 300.0, 20.0
"""How soon we look again: when all is well, and when something was refused or waits for something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An object that is not as it is wanted."""

    about: str
    text: str
    hint: str = ""
    passes: bool = False
    """It may come right by itself."""


@dataclass(frozen=True, slots=True)
class Done:
    """How it went, told again in every round until we look again."""

    of: str
    troubles: tuple[Trouble, ...]
    soon: bool


def sync(turn: Turn, kube: Kube) -> None:
    world, of = turn.world, turn.wanted.addons
    if not of:
        return
    now = world.clock.monotonic()
    done, when = world.memory.checked.get(STEP, (None, 0.0))
    if not isinstance(done, Done) or done.of != of or now - when >= (AGAIN if done.soon else EVERY):
        troubles, soon = carry_out(turn, kube, read_addons(world.store, turn.wanted.cluster, of))
        done = Done(of, tuple(troubles), soon)
        world.memory.confirm(STEP, done, now)
    for each in done.troubles:
        if each.passes:
            turn.waiting(STEP, each.about, each.text)
        else:
            turn.report.needs_a_person(STEP, each.text, each.about, each.hint)


def forget(turn: Turn) -> None:
    """Another master sees to it; when it is our turn again, we do not know what happened meanwhile."""
    turn.world.memory.checked.pop(STEP, None)


def carry_out(turn: Turn, kube: Kube, wanted: Sequence[Addon]) -> tuple[list[Trouble], bool]:
    """All of it once; what is not as wanted, and whether it is worth to look again soon."""
    resources = Resources(kube)
    kept = _get(kube, records.PATH)
    record = records.from_tree(kept)
    looked = {which: _look(kube, resources, which) for which in to_look_at(wanted, record)}
    exists = {which: tree for which, tree in looked.items() if tree is not None}
    chosen = plan(wanted, record, exists)
    seen = _version(kept)
    if chosen.during != record:
        seen = _write(kube, chosen.during, seen)
    troubles = _apply(turn, kube, resources, chosen, exists)
    if not troubles:  # what replaces a thing must be there before the thing goes
        _prune(turn, kube, resources, chosen)
        if chosen.after != chosen.during:
            _write(kube, chosen.after, seen)
    left = [Trouble(about=str(each.ref), text=f"{each.why} ({each.addon})", hint=each.hint) for each in chosen.left]
    return [*troubles, *left], bool(troubles)


def _apply(turn: Turn, kube: Kube, resources: Resources, chosen: AddonPlan, exists: dict[Ref, Tree]) -> list[Trouble]:
    troubles: list[Trouble] = []
    changed: Counter[str] = Counter()
    for addon, tree in chosen.apply:
        which = ref(tree)
        try:
            now = kube.apply(resources.path(which, tree["apiVersion"]), tree, manager=MANAGER)
        except UnknownKind as why:
            troubles.append(Trouble(about=str(which), text=f"{why.message} ({addon})", passes=True))
        except ApiError as why:
            troubles.append(Trouble(about=str(which), text=f"refused: {why.message}", hint=f"mend the add-on {addon}"))
        else:
            changed[addon] += said_by(tree, now) != said_by(tree, exists.get(which))
    for addon, count in changed.items():
        if count:
            turn.report.done(STEP, f"{count} object{'' if count == 1 else 's'} applied", addon)
    return troubles


def _prune(turn: Turn, kube: Kube, resources: Resources, chosen: AddonPlan) -> None:
    for each in chosen.prune:
        try:
            kube.delete(resources.path(each.ref), uid=each.uid)
        except ApiError as error:
            if error.status != 404:
                raise
        turn.report.done(STEP, f"{each.ref} taken away: it is no longer part of it", each.addon)


def _write(kube: Kube, record: Record, seen: str) -> str:
    return _version(kube.apply(records.PATH, records.to_tree(record, seen), manager=MANAGER))


def _look(kube: Kube, resources: Resources, which: Ref) -> Tree | None:
    try:
        return _get(kube, resources.path(which))
    except UnknownKind:  # of a kind that is not served, there is nothing
        return None


def _get(kube: Kube, path: str) -> Tree | None:
    try:
        return kube.get(path)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _version(tree: Tree | None) -> str:
    return str(((tree or {}).get("metadata") or {}).get("resourceVersion", ""))
