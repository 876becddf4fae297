"""`status` is never better than the truth, on a real cluster: an agent that stands still, and volumes that are gone.

An agent is stopped by a signal while its etcd runs on: everything answers, and only the age of its report shows it.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from clusters.real import RealCluster, until

OVERDUE_SECONDS = 120.0
"""A report is overdue some twenty seconds after it was written; a busy machine may take longer to show it."""


@pytest.fixture
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def status_text(cluster: RealCluster) -> tuple[int, str]:
    answer = cluster.run("status", "--cluster", cluster.name)
    return answer.code, answer.out


def elected(cluster: RealCluster) -> str:
    def one() -> str:
        found = [host for host, told in cluster.agents().items() if told["elected"]]
        return found[0] if len(found) == 1 else ""

    return until(one, "one master is elected")


def test_an_agent_that_stands_still_is_not_ready_and_two_are_never_elected_at_once(cluster: RealCluster) -> None:
    cluster.until_ready()
    frozen = elected(cluster)
    agent = cluster.agent_of(frozen)
    os.kill(agent, signal.SIGSTOP)
    try:
        until(lambda: [h for h, told in cluster.agents().items() if told["elected"] and h != frozen], "a successor")

        def overdue() -> dict[str, Any] | None:
            seen = cluster.status()
            assert sum(each["elected"] for each in seen["agents"]) <= 1, "two rows that are elected now"
            return seen if any(each["stale"] for each in seen["agents"]) else None

        seen = until(overdue, "its report is overdue", OVERDUE_SECONDS)
        assert not seen["ready"]
        assert any(f"the agent of {frozen} has reported nothing for" in each for each in seen["lacks"])
        assert [each["host"] for each in seen["agents"] if each["stale"]] == [frozen]
        assert all(not each["phaseIsCurrent"] for each in seen["disks"] if each["attachedTo"] == frozen)

        code, text = status_text(cluster)
        assert code == 3, text
        assert text.splitlines()[0].startswith(f"{cluster.name}: not ready (")
        row = next(line for line in text.splitlines() if line.startswith(frozen))
        assert "overdue" in row
        assert "was elected" in row
        assert text.count(", elected") <= 1
        assert "serving, last known" in text
    finally:
        os.kill(agent, signal.SIGCONT)
    cluster.until_ready()


def test_a_host_that_stands_still_is_not_ready_with_its_agent_as_a_reason(cluster: RealCluster) -> None:
    cluster.until_ready()
    host = cluster.host_of("a")
    cluster.admin.call("freeze_host", host=host)
    try:
        until(
            lambda: any(f"the agent of {host} has reported nothing for" in each for each in cluster.status()["lacks"]),
            "status gives the reason",
            OVERDUE_SECONDS,
        )
        answer = cluster.run("explain", "volume", cluster.volume("a")["id"], "--cluster", cluster.name)
        assert f"next: nothing, until the agent of {host} runs again" in answer.out
        assert status_text(cluster)[0] == 3
    finally:
        cluster.admin.call("thaw_host", host=host)
    cluster.until_ready()


def test_two_of_three_volumes_gone_for_good_need_a_person_and_say_which(cluster: RealCluster) -> None:
    cluster.until_ready()
    gone = sorted(cluster.volume(short)["id"] for short in "ab")
    for volume in gone:
        cluster.admin.call("delete_volume", volume=volume)

    def lost() -> dict[str, Any] | None:
        seen = cluster.status()
        return seen if any("gone for good" in each["text"] for each in seen["needsAPerson"]) else None

    until(lost, "status asks for a person")
    code, text = status_text(cluster)
    assert code == 4, text
    assert text.splitlines()[0].startswith(f"{cluster.name}: needs a person (")
    assert all(volume in text for volume in gone)
    assert "main keeps 1 of 3 volumes and needs 2 for a quorum" in text
    assert "hint: keep every volume that is left" in text

    waited = cluster.run("status", "--cluster", cluster.name, "--wait", "--timeout", "100s", "-o", "json")
    assert (waited.code, json.loads(waited.out)["exitCode"]) == (4, 4)
    told = cluster.run("explain", "member", "etcd-a", "--cluster", cluster.name).out
    assert "next: a person acts: keep every volume that is left" in told
    until(lambda: [n for n in cluster.notes("needsAPerson") if "gone for good" in n["text"]], "an agent says it too")
    for report in (each["report"] for each in cluster.agents().values()):
        if any("gone for good" in note["text"] for note in report["needsAPerson"]):
            assert not any("the elected master" in note["text"] for note in report["waiting"])
