"""Another version of etcd on a cluster that runs: one member after the other, and how far there is a way back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusters.scenario.acts import refusals, waits
from clusters.scenario.cluster import Stage
from protokube.launch.machine import EtcdCluster, MasterConfig
from protokube.launch.rollout import State
from protokube.store import layout
from scenarios.test_rollout import done, watched

OLD, NEW = "3.6.8", "3.7.1"
"""What the masters of a scenario run, and what comes next."""
SETTING = "quota-backend-bytes"


def on_etcd(wanted: MasterConfig, version: str, **settings: object) -> MasterConfig:
    """The same with another version of etcd, and other settings."""

    def changed(etcd: EtcdCluster) -> EtcdCluster:
        members = tuple(replace(each, settings={**each.settings, **settings}) for each in etcd.members)
        pod = replace(etcd.pod, image=f"registry.k8s.io/etcd:{version}-0")
        return replace(etcd, version=version, pod=pod, members=members)

    return replace(wanted, etcd=tuple(changed(each) for each in wanted.etcd))


def agreed(stage: Stage) -> tuple[int, int]:
    found = stage.etcd["main"].leader()
    assert found is not None
    return found[0].db.state.version


def put(stage: Stage, wanted: MasterConfig) -> int:
    number = stage.put_in_force(wanted)
    stage.announce()
    return number


def running(stage: Stage) -> list[str]:
    return sorted(each.version for each in stage.etcd["main"].processes.values())


def test_a_new_version_of_etcd_reaches_one_member_after_the_other(formed: Stage) -> None:
    number = put(formed, on_etcd(formed.wanted, NEW))

    watched(formed, 60)

    assert done(formed, number), formed.story()
    assert running(formed) == [NEW] * 3
    assert agreed(formed) == (3, 7)
    assert formed.healthy()


def until_members_run(stage: Stage, count: int) -> None:
    stage.until(lambda: running(stage).count(NEW) == count, within=120)


def test_a_version_that_does_not_start_stops_at_one_member_which_returns_to_the_old_one(formed: Stage) -> None:
    formed.etcd["main"].rejected = {SETTING: 7}
    put(formed, on_etcd(formed.wanted, NEW, **{SETTING: 7}))

    watched(formed, 150)

    assert formed.rollout().state is State.STOPPED, formed.story()
    assert formed.rollout().turn is None
    assert running(formed) == [OLD] * 3
    assert agreed(formed) == (3, 6)
    assert formed.healthy()


def test_while_one_member_has_the_old_version_all_return_to_it(formed: Stage) -> None:
    put(formed, on_etcd(formed.wanted, NEW))
    until_members_run(formed, 2)
    assert agreed(formed) == (3, 6)

    number = put(formed, on_etcd(formed.wanted, OLD))

    formed.until(lambda: done(formed, number), within=240)
    assert running(formed) == [OLD] * 3
    assert formed.healthy()


def test_once_all_members_have_run_the_new_version_nobody_starts_the_old_one(formed: Stage) -> None:
    number = put(formed, on_etcd(formed.wanted, NEW))
    formed.until(lambda: done(formed, number), within=120)
    starts = formed.etcd["main"].starts

    put(formed, on_etcd(formed.wanted, OLD))
    formed.run(120)

    assert running(formed) == [NEW] * 3, formed.story()
    assert formed.etcd["main"].starts == starts
    sentence = "all members of etcd main have run 3.7, and 3.6.8 cannot read its data"
    assert any(sentence in each for each in refusals(formed))
    assert formed.healthy()


def test_the_last_master_keeps_the_new_etcd_if_something_else_fails_there(formed: Stage) -> None:
    """To return would leave its member down: the version that all members agreed on is too new for the old program."""
    formed.etcd["main"].alarm_when_raised = "CORRUPT"
    number = put(formed, on_etcd(formed.wanted, NEW))
    until_members_run(formed, 2)
    last = next(each for each in formed.hosts.values() if each.wanted.revision != number)

    formed.until(lambda: formed.rollout().state is State.STOPPED and formed.rollout().turn is None, within=400)

    assert running(formed) == [NEW] * 3, formed.story()
    assert any("stays on revision" in each.text for each in formed.rollout().events), formed.story()
    assert formed.hosts[last.id].wanted.revision == number


def stopped_with_raised_data(stage: Stage) -> int:
    """All members run the new etcd, and the rollout stopped at the last master, for another reason."""
    stage.etcd["main"].alarm_when_raised = "CORRUPT"
    number = put(stage, on_etcd(stage.wanted, NEW))
    stage.until(lambda: stage.rollout().state is State.STOPPED and stage.rollout().turn is None, within=500)
    assert running(stage) == [NEW] * 3
    assert agreed(stage) == (3, 7)
    found = stage.etcd["main"].leader()
    assert found is not None
    stage.etcd["main"].carry_out(found, lambda state: replace(state, alarms=frozenset()))
    stage.until(stage.healthy, within=60)
    return number


@pytest.mark.parametrize("count", [1, 2, 3], ids=["one machine", "two machines", "all machines"])
def test_machines_replaced_after_a_stop_run_the_new_etcd_whose_data_they_hold(formed: Stage, count: int) -> None:
    number = stopped_with_raised_data(formed)
    for member in "abc"[:count]:
        formed.kill(host := formed.holder_of(member))
        formed.run(5)
        formed.replace_machine(host)

    formed.until(lambda: running(formed) == [NEW] * 3 and formed.healthy(), within=400)

    assert {each.wanted.revision for each in formed.hosts.values() if each.alive} == {number}
    assert formed.rollout().state is State.STOPPED


def test_two_machines_replaced_while_it_is_rolled_out_return_to_a_quorum(formed: Stage) -> None:
    number = put(formed, on_etcd(formed.wanted, NEW))
    formed.until(lambda: agreed(formed) == (3, 7), within=300)
    assert formed.rollout().state is State.ROLLING, "the last master is still to be seen healthy"
    for member in "ab":
        formed.kill(host := formed.holder_of(member))
        formed.replace_machine(host)

    formed.until(lambda: done(formed, number), within=500)

    assert running(formed) == [NEW] * 3
    assert formed.healthy()


def test_a_master_that_cannot_start_its_old_etcd_says_why_until_it_can_read_the_new_revision(formed: Stage) -> None:
    path = layout.revision(formed.wanted.cluster, stopped_with_raised_data(formed))
    kept = formed.store.inner.read(path).data
    formed.store.inner.put(path, b"{}")
    formed.kill(host := formed.holder_of("a"))
    formed.replace_machine(host)
    sentence = f"etcd {OLD} does not start with its data, which is newer"

    formed.until(lambda: any(sentence in each for each in waits(formed)), within=120)
    formed.store.inner.put(path, kept)

    formed.until(formed.healthy, within=200)
    assert running(formed) == [NEW] * 3
