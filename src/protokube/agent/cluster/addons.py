"""Reconcile the add-ons through the Kubernetes API: apply their objects, and prune objects that no add-on has any more.

The order makes a crash at any point safe: write the record of all objects, apply them, prune, write the record of what
is left. An agent with an older set than the record makes no changes. An object that fails does not block the others,
but nothing is pruned before all others are applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from protokube.addons import record as records
from protokube.addons.current import Current, why_not
from protokube.addons.plan import AddonPlan, plan, to_look_at
from protokube.addons.record import Record
from protokube.addons.value import Ref, Tree, managed_part, ref
from protokube.agent.cache import Confirmed, StepCache, is_fresh, is_recent
from protokube.agent.edges import Kube
from protokube.agent.round import Round
from protokube.errors import TryLater
from protokube.kube.client import ApiError, NoAnswer
from protokube.kube.resources import Resources, UnknownKind
from protokube.store.addons import read_addons, read_current

STEP, MANAGER = "addons", "protokube"
EVERY, AGAIN = 300.0, 20.0
"""Seconds until the next reconciliation: after success; and after an error or a wait. The second is also the interval
at which the store is read for the current set."""
SET_BACK = (
    "restore the newer store; or, if the store is right as it is, delete the ConfigMap "
    f"{records.NAMESPACE}/{records.NAME}, which takes nothing away"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An object that is not as it is wanted."""

    about: str
    text: str
    hint: str = ""
    passes: bool = False
    """The next attempt may succeed without a person."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a reconciliation, reported in every round until the next one."""

    of: Current
    troubles: tuple[Trouble, ...]
    soon: bool


@dataclass(slots=True)
class AddonsCache(StepCache):
    outcome: Confirmed[Outcome] | None = None
    store_read: Confirmed[str] | None = None
    """When the store was last read, with the digest in the launch data then."""


def sync(round_: Round, kube: Kube) -> None:
    cache, launch_digest, now = round_.edges.cache.of(AddonsCache), round_.wanted.addons, round_.edges.clock.monotonic()
    if not launch_digest:
        return
    outcome = _recent(round_, now)
    if outcome is None or not is_fresh(cache.store_read, launch_digest, now, AGAIN):
        current = _current(round_, outcome)
        if outcome is None or outcome.of != current:
            outcome = reconcile(round_, kube, current)
            cache.outcome = Confirmed(outcome, now)
        cache.store_read = Confirmed(launch_digest, now)
    for each in outcome.troubles:
        if each.passes:
            round_.waiting(STEP, each.about, each.text)
        else:
            round_.report.needs_a_person(STEP, each.text, each.about, each.hint)


def forget(round_: Round) -> None:
    """Drop the cached result while another master is elected: it may change the add-ons."""
    round_.edges.cache.of(AddonsCache).outcome = None


def _recent(round_: Round, now: float) -> Outcome | None:
    known = round_.edges.cache.of(AddonsCache).outcome
    if known is None or not is_recent(known.when, now, AGAIN if known.value.soon else EVERY):
        return None
    return known.value


def _current(round_: Round, outcome: Outcome | None) -> Current:
    """The current set of add-ons."""
    try:
        current = read_current(round_.edges.store, round_.wanted.cluster)
    except TryLater as why:
        if outcome is None:
            raise
        round_.report.waiting(STEP, why)  # keep the cached set; `sync` reads the store again after AGAIN seconds
        return outcome.of
    return current or Current(number=0, digest=round_.wanted.addons)


def reconcile(round_: Round, kube: Kube, current: Current) -> Outcome:
    """One pass over all add-ons."""
    kept = _get(kube, records.PATH)
    record, number, seen = records.from_tree(kept), records.number_of(kept), _version(kept)
    if why := why_not(current, number):
        return Outcome(current, (Trouble(about="", text=why, hint=SET_BACK),), True)
    wanted = read_addons(round_.edges.store, round_.wanted.cluster, current.digest)
    resources = Resources(kube)
    exists, unseen = _look(kube, resources, to_look_at(wanted, record))
    # without a number, another master may have a newer set than ours: nothing is pruned
    chosen = plan(wanted, record, exists, unseen=unseen.keys(), takes_away=current.number > 0)
    if (chosen.during, current.number) != (record, number):
        seen = _write(kube, chosen.during, current.number, seen)
    troubles = [*unseen.values(), *_apply(round_, kube, resources, chosen, exists)]
    if not troubles:  # a replacement must exist before the old object is deleted
        troubles = _prune(round_, kube, resources, chosen, seen)
    if not troubles and chosen.after != chosen.during:
        _write(kube, chosen.after, current.number, seen)
    left = [Trouble(about=str(each.ref), text=f"{each.why} ({each.addon})", hint=each.hint) for each in chosen.left]
    return Outcome(current, (*troubles, *left), bool(troubles))


def _look(kube: Kube, resources: Resources, refs: Iterable[Ref]) -> tuple[dict[Ref, Tree], dict[Ref, Trouble]]:
    """The objects that exist, and an error for each one that could not be read."""
    exists: dict[Ref, Tree] = {}
    unseen: dict[Ref, Trouble] = {}
    for which in refs:
        try:
            there = _get(kube, resources.path(which))
        except UnknownKind:  # a kind that is not served has no objects
            continue
        except NoAnswer:
            raise
        except (TryLater, ApiError) as why:
            text = f"cannot be looked at: {why.message}"
            unseen[which] = Trouble(about=str(which), text=text, passes=isinstance(why, TryLater))
            continue
        if there is not None:
            exists[which] = there
    return exists, unseen


def _apply(
    round_: Round, kube: Kube, resources: Resources, chosen: AddonPlan, exists: dict[Ref, Tree]
) -> list[Trouble]:
    troubles: list[Trouble] = []
    changed: Counter[str] = Counter()
    for addon, tree in chosen.apply:
        which = ref(tree)
        try:
            now = kube.apply(resources.path(which, tree["apiVersion"]), tree, manager=MANAGER)
        except NoAnswer:
            raise
        except TryLater as why:  # its CRD or an admission webhook may become available
            troubles.append(Trouble(about=str(which), text=f"{why.message} ({addon})", passes=True))
        except ApiError as why:
            troubles.append(Trouble(about=str(which), text=f"refused: {why.message}", hint=f"fix the add-on {addon}"))
        else:
            changed[addon] += managed_part(tree, now) != managed_part(tree, exists.get(which))
    for addon, count in changed.items():
        if count:
            round_.report.done(STEP, f"{count} object{'' if count == 1 else 's'} applied", addon)
    return troubles


def _prune(round_: Round, kube: Kube, resources: Resources, chosen: AddonPlan, seen: str) -> list[Trouble]:
    troubles: list[Trouble] = []
    for each in chosen.prune:
        if _version(_get(kube, records.PATH)) != seen:  # this agent was suspended, and a newer set may have the object
            raise TryLater("another writer changed the record of the add-ons meanwhile: nothing more is taken away")
        try:
            kube.delete(resources.path(each.ref), uid=each.uid)
        except NoAnswer:
            raise
        except (TryLater, ApiError) as why:
            if not isinstance(why, ApiError) or why.status != 404:
                text = f"cannot be taken away: {why.message} ({each.addon})"
                troubles.append(Trouble(about=str(each.ref), text=text, passes=isinstance(why, TryLater)))
                continue
        round_.report.done(STEP, f"{each.ref} taken away: it is no longer part of it", each.addon)
    return troubles


def _write(kube: Kube, record: Record, number: int, seen: str) -> str:
    """Write the record over the version that was read, or create it; returns its new resourceVersion."""
    if not seen:
        try:
            seen = _version(kube.create(records.FOLDER, records.empty()))
        except ApiError as why:
            if why.status == 409:
                raise TryLater("another writer created the record of the add-ons at the same time") from why
            raise
    return _version(kube.apply(records.PATH, records.to_tree(record, number, seen), manager=MANAGER))


def _get(kube: Kube, path: str) -> Tree | None:
    try:
        return kube.get(path)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _version(tree: Tree | None) -> str:
    return str(((tree or {}).get("metadata") or {}).get("resourceVersion", ""))
