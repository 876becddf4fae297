"""A view of a cluster from its state store alone: no API, no cloud, no root; whoever reads the store can have it.

The hard part is that nothing in a store is now. Each master publishes what it sees, at most a minute late after a
change and every five minutes without one. So reports of different ages stand side by side: the newest one that can
know something is believed about it, every report shows its age, and an old one counts for nothing but its own words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from protokube.config.pki import member_name
from protokube.errors import NotFound, ProtokubeError, Refused, TryLater
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import read_revision, read_rollout
from protokube.launch.rollout import Rollout
from protokube.members.generation import Generation, decode
from protokube.nearest import no_such
from protokube.records import Record, api, member
from protokube.records.names import address_type, make_record
from protokube.store import NotThere, Store, layout
from protokube.view.answered import answered
from protokube.view.cluster import ClusterView
from protokube.view.liveness import LIVE, NO_LEASE, NO_QUORUM, UNKNOWN, Liveness, is_shown, judge, newest_list
from protokube.view.parts import disk_views, expect
from protokube.view.published import FORMAT, Published, format_of, is_followed, read_published
from protokube.view.values import AgentView, DiskView, HostView, MemberView

AHEAD, BEHIND = 5.0, 30.0
"""Seconds by which a clock may differ before it is noted; one that is behind looks as if its write had taken long."""
KEPT = 60.0
"""Seconds by which the list of volumes may be older than the newest report before that is noted."""
NAMED = 3
"""Machines that a note names at most."""


class StoredSource:
    """Implements Source over the records of one cluster in a store."""

    def __init__(self, store: Store, cluster: str, clock: Callable[[], float] = time.time) -> None:
        self._store, self._cluster, self._clock = store, cluster, clock

    def look(self) -> ClusterView:
        """TryLater before the first report, and if the store does not answer; Refused if it turns us away."""
        now, notes = self._clock(), list[str]()
        reports = list(self._reports(now, notes))
        if not reports:
            raise self._nothing_yet(notes)
        rollout = self._rollout(notes)
        wanted = self._wanted(rollout, notes)
        keys = [each.key for each in wanted.etcd] if wanted else _keys(reports)
        unread = set[str]()
        generations = {key: self._generation(key, unread, notes) for key in keys}
        view = assemble(self._cluster, now, reports, wanted, generations)
        notes += view.notes
        return replace(view, source=self._store.url, rollout=rollout, unread=frozenset(unread), notes=tuple(notes))

    def _reports(self, now: float, notes: list[str]) -> Iterator[Published]:
        for path in self._store.list_paths(layout.agents(self._cluster)):
            try:
                stored = self._store.read(path)
            except NotThere:
                continue  # removed since it was listed
            if is_followed(stored.data):
                continue
            found = read_published(stored.data, now, stored.modified)
            if format_of(stored.data) > FORMAT:
                notes.append(f"{path} is in a newer format than this version reads: some of it may be missing here")
            if found is not None:
                yield found
            elif format_of(stored.data) <= FORMAT:
                notes.append(f"{path} cannot be read as the report of an agent")

    def _nothing_yet(self, notes: Sequence[str]) -> ProtokubeError:
        if is_missing(self._store, self._cluster):
            return no_such_cluster(self._store, self._cluster)
        if notes:
            return TryLater(
                f"no report of an agent of {self._cluster} can be read",
                saw="; ".join(notes[:NAMED]),
                hint="read them with the version of protokube that the masters run",
            )
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

    def _generation(self, key: str, unread: set[str], notes: list[str]) -> Generation | None:
        """None for one that is missing or damaged, and for one that the store does not give: then it is `unread`."""
        try:
            return decode(self._store.read(layout.etcd_generation(self._cluster, key)).data)
        except NotThere:
            return None
        except (TryLater, Refused) as why:
            unread.add(key)
            notes.append(why.message)
            return None


def is_missing(store: Store, cluster: str) -> bool:
    """Whether a store certainly has nothing of a cluster."""
    with suppress(Refused):  # keys are private: to be turned away from them is to know that there are some
        return not store.list_paths(cluster)
    return False


def no_such_cluster(store: Store, cluster: str) -> NotFound:
    known: Sequence[str] = ()
    with suppress(Refused):
        known = layout.clusters(store)
    return no_such("cluster", cluster, known, where=f"in {store.url}", hint="check the name and the store's URL")


def newest_by_name(reports: Sequence[Published], liveness: Liveness) -> list[Published]:
    """In the order of their names. Of machines with one name, the one with a lease, or else the newer one."""
    found: dict[str, Published] = {}
    for each in sorted(reports, key=lambda report: (liveness.was_live(report.machine), report.at)):
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
    reports = newest_by_name(reports, liveness)
    listing = _listing(reports, liveness)
    in_use = _in_use(reports, listing, liveness)
    shown = [each for each in reports if is_shown(each, liveness, in_use)]
    disks, agents = _disks(shown, listing, generations)
    expected = [replace(each, url=None) for each in expect(wanted, disks, cluster, {})]
    records = tuple(_records(shown, expected))
    zone = any(each.zone for each in shown)
    api_names = () if not zone else wanted.api_names if wanted else (f"api.internal.{cluster}",)
    hidden = [each for each in reports if not is_shown(each, liveness, in_use)]
    return ClusterView(
        cluster=cluster,
        at=now,
        hosts=tuple(_hosts(shown, liveness, in_use)),
        volumes_known=listing is not None,
        disks=disks,
        members=tuple(answered(expected, _witnesses(shown, liveness), volumes_known=listing is not None)),
        records=records,
        generations=generations,
        agents=agents,
        api_names=api_names,
        known_names=frozenset(each.name for each in records),
        notes=(*_clocks(shown, now), *_kept_list(listing, liveness), *_left_out(hidden, now)),
    )


def _keys(reports: Sequence[Published]) -> list[str]:
    return list(dict.fromkeys(key for each in reports for key in each.answers))


def _listing(reports: Sequence[Published], liveness: Liveness) -> Published | None:
    """The report with the newest complete list of the volumes, if possible of a master that lives."""
    return max(
        (each for each in reports if each.volumes is not None),
        key=lambda each: (liveness.is_alive(each) and not each.stale, each.listed_at),
        default=None,
    )


def _in_use(reports: Sequence[Published], listing: Published | None, liveness: Liveness) -> frozenset[str]:
    """Machines with a volume: their reports matter at any age. Without a list, those where a member answers."""
    if listing is not None:
        return frozenset(each["attached_to"] for each in listing.volumes or () if each["attached_to"])
    answering = {
        name for each in _witnesses(reports, liveness) for found in each.answers.values() for name in found.members
    }
    return frozenset(
        each.machine
        for each in reports
        if any(member_name(*mounted.member.split("/")) in answering for mounted in each.agent.mounted)
    )


def _hosts(shown: Sequence[Published], liveness: Liveness, in_use: Collection[str]) -> Iterator[HostView]:
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
    for machine in sorted(set(in_use) - reported - set(live or ())):  # it holds a volume, and has never reported
        state = UNKNOWN if live is None else NO_LEASE
        yield HostView(id=machine, name=machine, group="", address="", alive=live is None, peers=None, state=state)


def _disks(
    shown: Sequence[Published], listing: Published | None, generations: Mapping[str, Generation | None]
) -> tuple[tuple[DiskView, ...], tuple[AgentView, ...]]:
    """Volumes by the newest complete list, and the reports without what that list has overtaken."""
    names = {each.machine: each.name for each in shown}
    rows = [
        {**each, "attached_to": names.get(each["attached_to"], each["attached_to"]),
         "last_holder": names.get(each["last_holder"], each["last_holder"])}
        for each in (listing.volumes if listing else None) or ()
    ]  # fmt: skip
    elected = newest_list(each for each in shown if each.agent.elected)
    holders = {each["id"]: each["attached_to"] for each in rows}
    agents = []
    for each in shown:
        overtaken = listing is not None and each.listed_at < listing.listed_at
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
    """With a store that tells when it was written, ages go by its clock, and wrong clocks only spoil durations."""
    behind = max((each.at - now for each in shown if each.skew is not None), default=0.0)
    if behind > AHEAD:
        yield f"the clock of this machine is {behind:.0f} s behind that of the store: reports look newer than they are"
    for each in shown:
        if each.skew is None and each.at - now > AHEAD:
            yield f"the clock of {each.name} is {each.at - now:.0f} s ahead of this machine's: ages may be wrong"
        elif each.skew is not None and (each.skew > AHEAD or each.skew < -BEHIND):
            way = "ahead of" if each.skew > 0 else "behind"
            yield f"the clock of {each.name} is {abs(each.skew):.0f} s {way} the store's"


def _kept_list(listing: Published | None, liveness: Liveness) -> Iterator[str]:
    if listing is not None and (age := liveness.newest - listing.listed_at) > max(KEPT, listing.agent.next_within):
        yield f"volumes are shown as listed {age:.0f} s before the newest report: their provider has been silent since"


def _left_out(hidden: Sequence[Published], now: float) -> Iterator[str]:
    if not hidden:
        return
    newest = sorted(hidden, key=lambda each: each.at, reverse=True)
    names = ", ".join(f"{each.name} ({(now - each.at) / 3600:.0f} h)" for each in newest[:NAMED])
    more = f" and {len(hidden) - NAMED} more" if len(hidden) > NAMED else ""
    yield f"not shown, since they hold no live lease and have reported nothing for hours: {names}{more}"
