"""Tags that vanish and lists that lie stop no member and make no volume: only a positive word counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.scenario.cluster import Stage
from protokube.errors import TryLater

MINUTE = 60.0


def untag_one(stage: Stage) -> None:
    stage.cloud.strip_tags(stage.volume_of("a"))


def untag_all(stage: Stage) -> None:
    for volume in stage.cloud.volumes():
        stage.cloud.strip_tags(volume.id)


def swap_two(stage: Stage) -> None:
    one, other = stage.volume_of("a"), stage.volume_of("b")
    stage.change_tags(one, member="b")
    stage.change_tags(other, member="a")


def give_the_tags_of_another_cluster(stage: Stage) -> None:
    stage.change_tags(stage.volume_of("a"), etcd_cluster="events")


def leave_one_out(stage: Stage) -> None:
    stage.cloud.left_out = {stage.volume_of("a")}


def show_nothing(stage: Stage) -> None:
    stage.cloud.left_out = {each.id for each in stage.cloud.volumes()}


def say_nobody(stage: Stage) -> None:
    stage.cloud.nobodys = {each.id for each in stage.cloud.volumes()}


def be_old(stage: Stage) -> None:
    stage.cloud.stale = [*stage.cloud.volumes()]


TAGS = [untag_one, untag_all, swap_two, give_the_tags_of_another_cluster]
LIES = [leave_one_out, show_nothing, say_nobody, be_old]


@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("break_it", [*TAGS, *LIES], ids=lambda each: each.__name__)
def test_no_member_stops_and_no_volume_is_made(
    formed: Stage, break_it: Callable[[Stage], None], consistent: bool
) -> None:
    formed.cloud.consistent = consistent
    starts, volumes = formed.etcd["main"].starts, {each.id for each in formed.cloud.volumes()}
    links = {host.id: host.links() for host in formed.hosts.values()}
    break_it(formed)
    attached = formed.cloud.calls["attach"]
    for _ in range(20):
        formed.run(MINUTE / 4)
        assert formed.write()
        assert {host.id: host.links() for host in formed.hosts.values()} == links
    assert formed.etcd["main"].starts == starts
    assert {each.id for each in formed.cloud.volumes()} == volumes
    assert formed.cloud.calls["attach"] == attached, "what is mounted is not attached once more"


@pytest.mark.parametrize("break_it", TAGS, ids=lambda each: each.__name__)
def test_the_holder_writes_the_tags_again(formed: Stage, break_it: Callable[[Stage], None]) -> None:
    before = formed.cloud.volumes()
    formed.run(10)
    break_it(formed)
    formed.run(MINUTE)
    assert formed.cloud.volumes() == before


@pytest.mark.parametrize("break_it", [*TAGS, *LIES[:2]], ids=lambda each: each.__name__)
def test_a_master_that_dies_meanwhile_is_healed_all_the_same(formed: Stage, break_it: Callable[[Stage], None]) -> None:
    formed.cloud.consistent = False
    volumes = {each.id for each in formed.cloud.volumes()}
    host = formed.holder_of("a")
    break_it(formed)
    formed.kill(host)
    formed.replace_machine(host)
    formed.until(lambda: len(formed.serving()) == 3, within=3 * MINUTE)
    assert {each.id for each in formed.cloud.volumes()} == volumes


def test_where_reads_lag_a_volume_is_gone_only_after_a_minute_of_no(formed: Stage) -> None:
    formed.cloud.consistent = False
    volume = formed.volume_of("a")
    formed.delete_volume(volume)
    formed.run(50)
    assert len(formed.cloud.volumes()) == 2
    formed.until(formed.healthy, within=3 * MINUTE)
    assert formed.volume_of("a") != volume


@pytest.mark.parametrize("answers", [True, False])
def test_a_list_that_lacks_what_was_just_attached_gives_no_machine_a_second_volume(stage: Stage, answers: bool) -> None:
    """The volume is not mounted yet, and the record that names it cannot be read."""
    stage.store.down = True
    host = stage.boot("master-a")
    host.disks.seconds = lambda _job: float("inf")
    stage.round(host)
    (volume,) = (each.id for each in stage.cloud.volumes() if each.attached_to == host.id)
    stage.cloud.consistent, stage.cloud.left_out = False, {volume}
    stage.cloud.unanswered = {} if answers else {volume: TryLater("it does not answer")}
    stage.run(MINUTE)
    assert [each.id for each in stage.cloud.volumes() if each.attached_to] == [volume]
    assert host.round_ is not None
    assert (host.round_.volume(volume) is not None) is answers, "it is looked up by its id"

    stage.store.down, host.disks.seconds = False, lambda _job: 0.0
    stage.cloud.tell_the_truth()
    stage.cloud.unanswered.clear()
    stage.boot("master-b")
    stage.boot("master-c")
    stage.until(stage.healthy)
    assert stage.holder_of("a") is host
