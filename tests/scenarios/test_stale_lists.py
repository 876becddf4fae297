"""Lists that are older than our own attachments, and replies that get lost: no machine holds two of one etcd cluster.

One that did would take down both members when it fails.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from clusters.scenario.cluster import Stage
from clusters.scenario.host import Host
from protokube.errors import TryLater

MINUTE = 60.0


def without_a_store(stage: Stage) -> Host:
    """A machine whose store has been away since it booted, whose disks are slow, and whose lists may be old."""
    stage.store.down, stage.cloud.consistent = True, False
    host = stage.boot("master-a")
    host.disks.seconds = lambda _job: float("inf")
    return host


def held(stage: Stage, host: Host) -> list[str]:
    return [each.id for each in stage.cloud.volumes() if each.attached_to == host.id]


def comes_up(stage: Stage, host: Host) -> bool:
    """Once everything answers truthfully again, the cluster comes up, and the machine serves what it held."""
    (volume,) = held(stage, host)
    stage.store.down, stage.cloud.attach_answers_lost = False, False
    host.disks.seconds = lambda _job: 0.0
    stage.cloud.tell_the_truth()
    stage.cloud.unanswered.clear()
    stage.boot("master-b")
    stage.boot("master-c")
    stage.until(stage.healthy, within=2 * MINUTE)
    return host.links() == {"etcd.manifest": volume}


@pytest.mark.parametrize("answers", [True, False])
def test_a_volume_that_was_shown_free_after_it_was_attached_and_then_not_at_all_is_the_only_one(
    stage: Stage, answers: bool
) -> None:
    host = without_a_store(stage)
    stage.cloud.stale = stage.cloud.volumes()
    stage.round(host)
    (volume,) = held(stage, host)
    assert f"{volume} was attached, and is not listed as ours yet" in host.sentence

    stage.cloud.stale, stage.cloud.left_out = None, {volume}
    stage.cloud.unanswered = {} if answers else {volume: TryLater("it does not answer")}
    stage.run(MINUTE)
    assert held(stage, host) == [volume]
    if not answers:
        assert f"cannot be attached yet: {volume} was attached here, and is not listed: it does not" in host.sentence
    assert comes_up(stage, host)


def test_a_volume_that_was_attached_although_the_reply_was_lost_is_the_only_one(stage: Stage) -> None:
    host = without_a_store(stage)
    stage.cloud.attach_answers_lost = True
    stage.round(host)
    (volume,) = held(stage, host)

    stage.cloud.left_out = {volume}
    stage.cloud.unanswered = {volume: TryLater("it does not answer")}
    stage.run(MINUTE)
    assert held(stage, host) == [volume]
    assert comes_up(stage, host)


def test_a_free_volume_is_taken_once_the_lookup_says_that_the_lost_attachment_failed(stage: Stage) -> None:
    host = without_a_store(stage)

    def fail() -> None:
        raise TryLater("the cloud does not answer")

    host.fuse.set(0, fail, "cloud.attach")  # before it is carried out
    stage.round(host)
    assert "cannot be attached: the cloud does not answer" in host.sentence
    assert held(stage, host) == []
    stage.cloud.stale = stage.cloud.volumes()
    stage.run(10)
    assert len(held(stage, host)) == 1


@pytest.mark.parametrize("consistent", [True, False])
def test_a_volume_that_could_not_be_attached_keeps_no_other_away(stage: Stage, consistent: bool) -> None:
    stage.cloud.consistent = consistent
    host = stage.boot("master-a")
    stage.cloud.refused = {stage.volume_of("a"): "its zone is full"}
    stage.round(host)
    assert len(held(stage, host)) == 1
    assert host.round_ is not None
    assert [each.attached_to for each in host.round_.volumes or ()].count(host.id) == 1


@pytest.mark.parametrize("seed", range(60))
def test_no_machine_ever_holds_two_of_one_etcd_cluster(stage: Stage, seed: int) -> None:
    """Rounds of two machines, between them whatever a cloud with replicas may answer, and a store that is away."""
    draw, cloud = random.Random(seed), stage.cloud
    cloud.consistent = False
    stage.store.down = draw.random() < 0.8
    hosts = [stage.boot(group) for group in ("master-a", "master-b")]
    for host in hosts:
        host.disks.seconds = lambda _job: draw.choice((0.0, 2.0, float("inf")))
    before, ids = [cloud.volumes()], [each.id for each in cloud.volumes()]
    for _ in range(40):
        cloud.tell_the_truth()
        cloud.stale = draw.choice(before) if draw.random() < 0.5 else None
        cloud.left_out = {each for each in ids if draw.random() < 0.3}
        cloud.unanswered = {each: TryLater("it does not answer") for each in ids if draw.random() < 0.2}
        cloud.attach_answers_lost = draw.random() < 0.3
        cloud.refused = {each: "not now" for each in ids if draw.random() < 0.1}
        cloud.down = draw.random() < 0.1
        if draw.random() < 0.1:
            stage.store.down = not stage.store.down
        stage.round(draw.choice(hosts))
        before.append(cloud.volumes())
        counts = Counter((each.attached_to, each.etcd_cluster) for each in cloud.volumes() if each.attached_to)
        assert max(counts.values(), default=0) <= 1, f"seed {seed}: {counts}\n{stage.story()}"
        stage.clock.advance(draw.choice((0.5, 2.0, 10.0)))
