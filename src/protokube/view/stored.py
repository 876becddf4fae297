"""A view of a cluster from its state store alone: no API, no cloud, no root; whoever reads the store can have it.

The hard part is that nothing in a store is now. Each master publishes what it sees, at most a minute late after a
change and every five minutes without one. So reports of different ages stand side by side: the newest one that can
know something is believed about it, every report shows its age, and an old one counts for nothing but its own words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import read_revision, read_rollout
from protokube.launch.rollout import Rollout
from protokube.members.generation import Generation, decode
from protokube.records import Record, api, member
from protokube.records.names import address_type, make_record
from protokube.spec.decode import near
from protokube.store import NotThere, Store, layout
from protokube.view.answered import answered
from protokube.view.cluster import ClusterView
from protokube.view.liveness import LIVE, NO_QUORUM, UNKNOWN, Liveness, is_shown, judge
from protokube.view.parts import disk_views, expect
from protokube.view.published import Published, read_published
from protokube.view.values import AgentView, DiskView, HostView, MemberView

AHEAD = 5.0
"""Seconds by which a clock may differ from ours before it is noted."""


class StoredSource:
    """Implements Source over the records of one cluster in a store."""

    def __init__(self, store: Store, cluster: str, clock: Callable[[], float] = time.time) -> None:
        self._store, self._cluster, self._clock = store, cluster, clock

    def look(self) -> ClusterView:
        """TryLater before the first report, and if the store does not answer; Refused if it turns us away."""
        now, notes = self._clock(), list[str]()
        reports = newest_by_name(self._reports(now, notes))
        if not reports:
            raise self._nothing_yet()
        rollout = self._rollout(notes)
        wanted = self._wanted(rollout, notes)
        keys = [each.key for each in wanted.etcd] if wanted else _keys(reports)
        generations = {key: self._generation(key) for key in keys}
        view = assemble(self._cluster, now, reports, wanted, generations)
        return replace(view, source=self._store.url, rollout=rollout, notes=(*notes, *view.notes))

    def _reports(self, now: float, notes: list[str]) -> Iterator[Published]:
        for path in self._store.list_paths(layout.agents(self._cluster)):
            try:
                found = read_published(self._store.read(path).data, now)
            except NotThere:
                continue  # removed since it was listed
            if found is None:
                notes.append(f"{path} cannot be read as the report of an agent")
            else:
                yield found

    def _nothing_yet(self) -> ProtokubeError:
        if is_missing(self._store, self._cluster):
            return no_such_cluster(self._store, self._cluster)
        return TryLater(
            f"no agent of {self._cluster} has reported yet",
            saw=f"nothing in {layout.agents(self._cluster)} of {self._store.url}",
            hint="masters report about ten seconds after their start; those of an older version never do",
        )

    def _rollout(self, notes: list[str]) -> Rollout | None:
        try:
            return read_rollout(self._store, self._cluster)
        except ProtokubeError as why:
            notes.append(why.message)
            return None

    def _wanted(self, rollout: Rollout | None, notes: list[str]) -> MasterConfig | None:
        try:
            return read_revision(self._store, self._cluster, rollout.wanted).master if rollout else None
        except ProtokubeError as why:
            notes.append(why.message)
            return None

    def _generation(self, key: str) -> Generation | None:
        try:
            return decode(self._store.read(layout.etcd_generation(self._cluster, key)).data)
        except NotThere:
            return None


def is_missing(store: Store, cluster: str) -> bool:
    """Whether a store certainly has nothing of a cluster."""
    with suppress(Refused):  # keys are private: to be turned away from them is to know that there are some
        return not store.list_paths(cluster)
    return False


def no_such_cluster(store: Store, cluster: str) -> InvalidRequest:
    known: Sequence[str] = ()
    with suppress(Refused):
        known = layout.clusters(store)
    return InvalidRequest(
        f"there is no cluster {cluster!r} in {store.url}",
        saw=", ".join(known) or "none that can be listed",
        hint=near(cluster, known) or "check the name and the store's URL",
    )


def newest_by_name(reports: Iterator[Published]) -> list[Published]:
    """In the order of their names. A machine that was replaced under the same name is the newer one."""
    found: dict[str, Published] = {}
    for each in sorted(reports, key=lambda report: report.at):
        found[each.name] = each
    return [found[name] for name in sorted(found)]


def assemble(
    cluster: str,
    now: float,
    reports: Sequence[Published],
    wanted: MasterConfig | None,
    generations: Mapping[str, Generation | None],
) -> ClusterView:
    """The view that follows from these reports. Pure."""
    liveness = judge(reports)
    shown = [each for each in reports if is_shown(each, liveness)]
    disks, agents = _disks(shown, liveness, generations)
    expected = [replace(each, url=None) for each in expect(wanted, disks, cluster, {})]
    records = tuple(_records(shown, expected))
    zone = any(each.zone for each in shown)
    api_names = () if not zone else wanted.api_names if wanted else (f"api.internal.{cluster}",)
    hidden = [each for each in reports if each not in shown]
    return ClusterView(
        cluster=cluster,
        at=now,
        hosts=tuple(_hosts(shown, liveness)),
        disks=disks,
        members=tuple(answered(expected, _witnesses(shown, liveness))),
        records=records,
        generations=generations,
        agents=agents,
        api_names=api_names,
        known_names=frozenset(each.name for each in records),
        notes=(*_clocks(shown, now), *_left_out(hidden)),
    )


def _keys(reports: Sequence[Published]) -> list[str]:
    return list(dict.fromkeys(key for each in reports for key in each.answers))


def _hosts(shown: Sequence[Published], liveness: Liveness) -> Iterator[HostView]:
    reported = {each.machine for each in shown}
    for each in shown:
        yield HostView(
            id=each.machine, name=each.name, group=each.group, address=each.address, alive=liveness.is_alive(each),
            peers=None, state=liveness.state(each),
        )  # fmt: skip
    live = liveness.leases.live if liveness.leases else None
    for machine, address in sorted((live or {}).items()):
        if machine not in reported:
            yield HostView(id=machine, name=machine, group="", address=address, alive=True, peers=None, state=LIVE)


def _disks(
    shown: Sequence[Published], liveness: Liveness, generations: Mapping[str, Generation | None]
) -> tuple[tuple[DiskView, ...], tuple[AgentView, ...]]:
    """Volumes by the newest complete list, and the reports without what that list has overtaken."""
    names = {each.machine: each.name for each in shown}
    listing = max(
        (each for each in shown if each.volumes is not None),
        key=lambda each: (liveness.is_alive(each) and not each.stale, each.at),
        default=None,
    )
    rows = [
        {**each, "attached_to": names.get(each["attached_to"], each["attached_to"]),
         "last_holder": names.get(each["last_holder"], each["last_holder"])}
        for each in (listing.volumes if listing else None) or ()
    ]  # fmt: skip
    elected = max((each for each in shown if each.agent.elected), key=lambda each: each.at, default=None)
    holders = {each["id"]: each["attached_to"] for each in rows}
    agents = []
    for each in shown:
        overtaken = listing is not None and each.at < listing.at
        phases = {
            volume: phase
            for volume, phase in each.agent.phases.items()
            if not overtaken or holders.get(volume) == each.name
        }
        agents.append(replace(each.agent, phases=phases, elected=each is elected))
    return disk_views(rows, agents, generations), tuple(agents)


def _records(shown: Sequence[Published], expected: Sequence[MemberView]) -> Iterator[Record]:
    """Each name as the newest report that knows it has it."""
    found: dict[str, tuple[str, ...]] = {}
    for each in sorted(shown, key=lambda report: report.at):
        found |= each.names
    members = {each.dns_name for each in expected}
    for name, addresses in sorted(found.items()):
        ttl = member.TTL if name in members else api.TTL
        for family in sorted({address_type(each) for each in addresses}):
            of_family = [each for each in addresses if address_type(each) == family]
            yield make_record(name, family, of_family, ttl)


def _witnesses(shown: Sequence[Published], liveness: Liveness) -> list[Published]:
    """Whose survey of etcd counts, the newest first: masters with a lease, or, if nobody knows of leases, all."""
    living = [each for each in shown if liveness.state(each) in (LIVE, NO_QUORUM, UNKNOWN) and not each.stale]
    return sorted(living, key=lambda each: each.at, reverse=True)


def _clocks(shown: Sequence[Published], now: float) -> Iterator[str]:
    for each in shown:
        if each.at - now > AHEAD:
            yield f"the clock of {each.name} is {each.at - now:.0f} s ahead of this machine's: ages may be wrong"


def _left_out(hidden: Sequence[Published]) -> Iterator[str]:
    if hidden:
        names = ", ".join(f"{each.name} ({each.agent.age / 3600:.0f} h)" for each in hidden)
        yield f"not shown, since they hold no live lease and have reported nothing for hours: {names}"
