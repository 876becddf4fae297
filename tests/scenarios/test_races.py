"""Things that happen between two calls of one round, each at the one moment where it would hurt."""

from __future__ import annotations

from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from clusters.scenario.host import Host
from protokube.records.member import parse_claim

MINUTE = 60.0
BEFORE, AFTER = 0, 1
"""The call is carried out; its answer arrives."""


def at(host: Host, call: str, when: int, action: object) -> None:
    assert callable(action)
    host.fuse.set(when, action, call)


def test_an_attach_whose_answer_was_lost_does_not_make_a_master_reach_for_a_second_volume(stage: Stage) -> None:
    host = stage.boot("master-a")

    def lose() -> None:
        stage.cloud.answers_lost = True

    at(host, "attach", BEFORE, lose)
    stage.round(host)
    assert "cannot be attached: the answer of the memory cloud was lost" in host.sentence
    stage.cloud.answers_lost = False
    for _ in range(5):
        stage.round(host)
    assert [each.attached_to for each in stage.cloud.volumes()].count(host.id) == 1


def test_a_learner_that_starts_while_its_round_looks_is_not_removed_as_one_that_lost_its_data(formed: Stage) -> None:
    """Between the look at its disk and the reading of the list it was started, and told the list its client URL."""
    host, lost = formed.holder_of("a"), formed.volume_of("a")
    formed.delete_volume(lost)
    for _ in range(60):
        for each in formed.hosts.values():
            formed.beat(each)
            formed.round(each, kubelet=each is not host)
        formed.clock.advance(2.0)
        if host.links() and host.links()["etcd.manifest"] != lost:
            break
    assert host.links()
    assert "main/a: added as learner" in host.sentence
    ids, starts = {each.id for each in formed.etcd["main"].led()[0].db.state.members}, formed.etcd["main"].starts

    at(host, "status", BEFORE, lambda: formed.refresh(host))
    formed.round(host)
    formed.run(30)

    assert {each.id for each in formed.etcd["main"].led()[0].db.state.members} == ids
    assert formed.etcd["main"].starts == starts + 1
    assert formed.healthy()


def test_a_master_that_sleeps_right_before_it_publishes_a_name_does_not_take_it_from_its_successor(
    formed: Stage,
) -> None:
    old = formed.holder_of("b")
    formed.kill(old)
    sleeper = formed.replace_machine(old)
    epochs: list[int] = []

    def sleep() -> None:
        formed.freeze(sleeper)
        formed.replace_machine(sleeper)
        formed.run(20)
        assert formed.healthy()
        claim = parse_claim(formed.dns.text("etcd-b.internal.laptop"))
        assert claim is not None
        epochs.append(claim.epoch)
        formed.thaw(sleeper)

    at(sleeper, "apply", BEFORE, sleep)
    formed.until(lambda: epochs)
    formed.run(MINUTE)

    assert epochs == [3]
    assert formed.dns.text("etcd-b.internal.laptop") == f"protokube epoch=3 holder={formed.holder_of('b').id}"
    assert formed.dns.addresses("etcd-b.internal.laptop") == (formed.holder_of("b").address,)
    assert sleeper.links() == {}
    assert formed.healthy()


def test_the_same_where_it_sleeps_before_it_even_reads_the_name(formed: Stage) -> None:
    """It has written its epoch on the disk; when it wakes up and reads the name, that carries a greater one."""
    old = formed.holder_of("b")
    formed.kill(old)
    sleeper = formed.replace_machine(old)
    slept: list[Host] = []

    def sleep() -> None:
        assert formed.identity(formed.volume_of("b")).holder == sleeper.id
        formed.freeze(sleeper)
        slept.append(formed.replace_machine(sleeper))
        formed.run(20)
        assert formed.healthy()
        formed.thaw(sleeper)

    at(sleeper, "dns.read", BEFORE, sleep)
    while not slept:
        formed.round(sleeper)
    assert formed.dns.addresses("etcd-b.internal.laptop") == (slept[0].address,)
    assert "is held by" in sleeper.sentence
    formed.run(MINUTE)
    assert formed.dns.addresses("etcd-b.internal.laptop") == (slept[0].address,)
    assert formed.healthy()


def test_an_agent_that_dies_right_after_a_replacement_was_made_leaves_no_second_one(formed: Stage) -> None:
    formed.delete_volume(formed.volume_of("a"))
    elected = next(each for each in formed.hosts.values() if each.presence.elected())
    died: list[str] = []

    def die() -> None:
        died.append(elected.id)
        raise AgentDied

    at(elected, "create_volume", AFTER, die)
    for _ in range(30):
        formed.rounds(seconds=2)
    assert died
    assert formed.healthy()
    assert formed.generation().replacements == {"a": formed.volume_of("a")}
    assert len(formed.platters.by_volume) == 4


def test_a_late_founder_whose_agent_dies_before_it_is_started_is_not_shut_out(stage: Stage) -> None:
    """It is marked as part of the cluster only once it has data; else it could never start."""
    stage.boot("master-a"), stage.boot("master-b")
    stage.until(lambda: not stage.generation().open)
    late = stage.boot("master-c")
    ids = {each.id for each in stage.etcd["main"].led()[0].db.state.members}

    def die() -> None:
        assert stage.cloud.find(stage.volume_of("c")).mark == "forming"
        assert late.links() == {}
        raise AgentDied

    at(late, "keys.sync", 2, die)  # the second time, for the certificates of its member
    for _ in range(10):
        stage.rounds()
    stage.until(stage.healthy)
    assert stage.etcd["main"].histories == [1]
    assert {each.id for each in stage.etcd["main"].led()[0].db.state.members} == ids  # nobody had to be removed


def test_a_volume_taken_away_between_the_fence_and_the_identity_is_not_written_to(formed: Stage) -> None:
    old = formed.holder_of("c")
    formed.kill(old)
    slow = formed.replace_machine(old)
    volume = formed.volume_of("c")

    def lose() -> None:
        formed.replace_machine(slow)
        formed.run(20)

    formed.until(lambda: volume in slow.disks.table or formed.round(slow) is None)
    formed.until(formed.healthy)
    assert formed.identity(volume).epoch == 2
    formed.reboot(slow)
    at(slow, "find", AFTER, lose)
    formed.run(MINUTE)
    assert formed.identity(volume).epoch == 3
    assert formed.identity(volume).holder == formed.holder_of("c").id != slow.id
    assert formed.healthy()


def test_two_masters_in_one_second_reach_for_one_volume_and_one_of_them_gets_it(stage: Stage) -> None:
    left, right = stage.boot("master-a"), stage.boot("master-a")
    at(left, "attach", BEFORE, lambda: stage.round(right))
    stage.round(left)
    held = [each.attached_to for each in stage.cloud.volumes() if each.attached_to]
    assert sorted(held) == sorted([left.id, right.id])
    assert f"went to another master (attached to {right.id})" in left.sentence


def test_a_mark_that_the_provider_does_not_show_yet_lets_nobody_format(stage: Stage) -> None:
    host = stage.boot("master-a")

    def unseen() -> None:
        for volume in stage.cloud.volumes():
            stage.change_tags(volume.id, mark="")

    stage.round(host)
    at(host, "write_mark", AFTER, unseen)
    stage.round(host)
    assert "does not show the mark" in host.sentence
    assert all(each.formats == [] for each in stage.platters.by_volume.values())
    stage.boot("master-b"), stage.boot("master-c")
    stage.until(stage.healthy)


def test_a_master_declared_dead_though_it_lives_gives_the_office_up(formed: Stage) -> None:
    elected = next(each for each in formed.hosts.values() if each.presence.elected())
    volume = next(iter(elected.disks.table))
    formed.declare_dead(elected)
    formed.delete_volume(volume)
    formed.boot(elected.machine.group)
    formed.until(formed.healthy, within=2 * MINUTE)
    assert not elected.presence.elected()
    formed.until(lambda: elected.address not in formed.dns.addresses("api.internal.laptop"), within=MINUTE)
