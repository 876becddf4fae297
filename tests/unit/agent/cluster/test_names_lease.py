"""While the agents look after the names of the API, the cluster can see it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from builders.addons import MemoryKube
from builders.agent import Alone, a_round
from clusters.scenario.edges import FakeClock, HostClock
from protokube.agent.cluster import names_lease
from protokube.agent.round import Round
from protokube.providers.dns.memory import MemoryDns
from protokube.records.api import LEASE_EXTERNAL, LEASE_MEMBERS, LEASE_NAMES, LEASE_SECONDS


def turn_at(clock: FakeClock, root: Path, *, dns: MemoryDns | None, zone_mode: bool = True) -> Round:
    return a_round(root, clock=HostClock(clock), dns=dns, zone_mode=zone_mode)


def test_it_says_which_names_are_the_agents_and_by_when_it_will_say_so_again(tmp_path: Path) -> None:
    kube = MemoryKube()
    round_ = turn_at(FakeClock(), tmp_path, dns=MemoryDns("test"))
    names_lease.sync(round_, kube)

    lease = kube.objects[names_lease.PATH]
    assert lease["metadata"]["annotations"][LEASE_NAMES] == ",".join(sorted(round_.wanted.api_names))
    members = {member.dns_name for etcd in round_.wanted.etcd for member in etcd.members}
    assert members
    assert set(lease["metadata"]["annotations"][LEASE_MEMBERS].split(",")) == members
    assert lease["spec"]["leaseDurationSeconds"] == LEASE_SECONDS
    assert lease["spec"]["holderIdentity"] == round_.edges.me.name


def test_it_has_the_external_addresses_of_masters_and_a_new_one_at_once(tmp_path: Path) -> None:
    kube = MemoryKube()
    round_ = turn_at(FakeClock(), tmp_path, dns=MemoryDns("test"))
    presence = Alone({"i-1": "10.0.0.1", "i-2": "10.0.0.2", "i-3": "10.0.0.3"}, elected=True)
    round_.edges.presence = presence
    names_lease.sync(round_, kube)
    assert LEASE_EXTERNAL not in kube.objects[names_lease.PATH]["metadata"]["annotations"]

    presence.external = {"i-1": "203.0.113.1", "i-3": "2001:db8::3"}
    names_lease.sync(round_, kube)
    found = kube.objects[names_lease.PATH]["metadata"]["annotations"][LEASE_EXTERNAL]
    assert found == "2001:db8::3=10.0.0.3,203.0.113.1=10.0.0.1"


def test_it_is_renewed_well_before_it_ends_and_not_in_every_round(tmp_path: Path) -> None:
    kube, clock = MemoryKube(), FakeClock()
    round_ = turn_at(clock, tmp_path, dns=MemoryDns("test"))
    times = []
    for _ in range(LEASE_SECONDS * 3):
        before = len(kube.writes())
        names_lease.sync(round_, kube)
        if len(kube.writes()) > before:
            times.append(clock.seconds)
        clock.advance(1)

    gaps = [after - before for before, after in pairwise(times)]
    assert all(LEASE_SECONDS / 8 < gap <= LEASE_SECONDS / 3 for gap in gaps), gaps
    assert len(gaps) > 5


def test_every_renewal_tells_another_time(tmp_path: Path) -> None:
    kube, clock = MemoryKube(), FakeClock()
    round_ = turn_at(clock, tmp_path, dns=MemoryDns("test"))
    times = set()
    for _ in range(3):
        names_lease.sync(round_, kube)
        times.add(kube.objects[names_lease.PATH]["spec"]["renewTime"])
        clock.advance(LEASE_SECONDS / 2)
    assert len(times) == 3


def test_agents_that_keep_no_zone_claim_no_names(tmp_path: Path) -> None:
    kube = MemoryKube()
    names_lease.sync(turn_at(FakeClock(), tmp_path, dns=None), kube)
    names_lease.sync(turn_at(FakeClock(), tmp_path, dns=MemoryDns("test"), zone_mode=False), kube)
    assert kube.objects == {}
