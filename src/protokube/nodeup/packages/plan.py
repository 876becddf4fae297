"""Compare packages as they are with those that are asked for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from protokube.errors import Refused
from protokube.nodeup.changes import Change
from protokube.nodeup.packages.names import Asked
from protokube.nodeup.packages.status import ABSENT, Package


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What there is to do."""

    install: tuple[Asked, ...] = ()
    unhold: tuple[str, ...] = ()
    """Held by us at a version that is no longer wanted."""
    hold: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


def plan(
    observed: Mapping[str, Package],
    wanted: Iterable[Asked],
    held_by_us: Collection[str],
    holds: Collection[str] | None = None,
) -> Plan:
    """`holds`: those that are to be held, None for all.

    Refused if the user holds a package at a version that is not wanted.
    """
    install: list[Asked] = []
    unhold: list[str] = []
    hold: list[str] = []
    changes: list[Change] = []
    for each in wanted:
        seen = observed.get(each.name, Package(name=each.name))
        if change := difference(seen, each):
            install.append(each)
            changes.append(change)
            if seen.held and seen.version and not each.accepts(seen.version):
                unhold.append(held_by(seen, each, held_by_us))
        if (not seen.held or each.name in unhold) and (holds is None or each.name in holds):
            hold.append(each.name)
            changes.append(Change(f"{each.name} hold", "no", "yes"))
    return Plan(install=tuple(install), unhold=tuple(unhold), hold=tuple(hold), changes=tuple(changes))


def difference(seen: Package, wanted: Asked) -> Change | None:
    if seen.interrupted:
        return Change(wanted.name, f"{seen.state}, damaged" if seen.damaged else seen.state, "installed")
    if seen.state in ABSENT:
        return Change(wanted.name, "not installed", wanted.version or "installed")
    if not wanted.accepts(seen.version):
        return Change(wanted.name, seen.version, wanted.version)
    return None


def held_by(seen: Package, wanted: Asked, held_by_us: Collection[str]) -> str:
    if seen.name in held_by_us:
        return seen.name
    raise Refused(
        f"{seen.name} is held at {seen.version} by somebody else",
        saw=f"{seen.name} {seen.version}, on hold",
        want=str(wanted),
        hint=f"`apt-mark unhold {seen.name}`, or ask for that version",
    )
