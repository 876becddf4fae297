"""How long an agent sleeps after a round, what it logs, and what it leaves for others to read."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path

import pytest

from builders.agent import a_round
from clusters.scenario.cluster import Stage
from clusters.scenario.host import tmpfs
from protokube.agent.loop import IDLE, SOON, Loop, Pace
from protokube.agent.report import Report
from protokube.agent.round import Round


def after(pace: Pace, *, did: str = "", waits: tuple[str, ...] = (), person: str = "") -> float:
    report = Report()
    report.done("volumes", did)
    for each in waits:
        report.waiting("names", "no answer", each)
    if person:
        report.needs_a_person("volumes", person)
    round_ = a_round(Path("/nowhere"))
    round_.report = report
    return round(pace.after(round_), 3)


def steady() -> Pace:
    return Pace(jitter=lambda: 0.5)


def test_a_round_that_did_something_is_followed_by_another_one_soon() -> None:
    assert after(steady(), did="attached vol-1") == SOON


def test_an_idle_agent_has_a_round_every_ten_seconds() -> None:
    pace = steady()
    assert [after(pace) for _ in range(3)] == [IDLE, IDLE, IDLE]


def test_what_is_waited_for_is_asked_for_less_and_less_often() -> None:
    pace = steady()
    pauses = [after(pace, waits=("a",)) for _ in range(10)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == IDLE


def test_another_wait_starts_the_count_anew() -> None:
    pace = steady()
    for _ in range(8):
        after(pace, waits=("a",))
    assert after(pace, waits=("a", "b")) == SOON
    assert after(pace, waits=("a", "b")) == 2 * SOON


def test_what_only_a_person_can_change_is_no_reason_to_hurry() -> None:
    assert after(steady(), person="untag one of them") == IDLE


def test_agents_do_not_all_come_in_the_same_second() -> None:
    pauses = {after(Pace()) for _ in range(20)}
    assert len(pauses) > 10
    assert all(0.9 * IDLE <= each <= 1.1 * IDLE for each in pauses)


@pytest.fixture
def stage() -> object:
    with tmpfs() as folder:
        yield Stage(folder)


def test_a_round_that_did_something_logs_one_line_and_one_that_only_waits_on_logs_none(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    host = stage.boot()
    stage.platters["vol-00000001"].appears = 1e9
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            host.loop.once()
            stage.clock.advance(5)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2, lines  # what was done, and then what is waited for without having done anything
    assert lines[0].startswith("round 1, 0.00s: keys issued protokube-etcd-client")
    assert "volumes main/a: attached vol-00000001" in lines[0]


def test_every_round_leaves_its_status_whole(stage: Stage) -> None:
    host = stage.boot()
    host.loop.once()
    status = host.status
    assert status["machine"] == {
        "id": host.id, "name": host.id, "address": host.address, "external": "", "zone": "local", "group": "master-a",
    }  # fmt: skip
    assert status["round"] == 1
    assert status["volumes"][0]["phase"] == "attached"
    assert status["volumes"][1]["phase"] == "free"
    assert status["jobs"][0]["job"] == "Probe"
    assert status["report"]["waiting"][0]["text"] == "vol-00000001 is being read"
    assert [each.name for each in (host.root / "run/protokube").iterdir()] == ["status.json"]


def test_a_status_that_cannot_be_written_stops_no_round(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    host = stage.boot()
    (host.root / "run/protokube").rmdir()
    host.loop.once()
    assert "cannot write" in caplog.text
    assert host.loop.rounds == 1


def test_a_silent_provider_has_a_status_too(stage: Stage) -> None:
    host = stage.boot()
    stage.cloud.down = True
    host.loop.once()
    assert host.status["volumes"] is None
    assert host.status["live"] is None


def test_what_happens_during_a_round_asks_for_another_one_and_stop_ends_the_loop(stage: Stage) -> None:
    host = stage.boot()
    stage.cloud.down = True
    loop: Loop = host.loop
    rounds = threading.Event()

    def after_round(_turn: Round, _took: float) -> None:
        if loop.rounds == 1:
            loop.wake()
        else:
            rounds.set()

    loop.after = after_round
    thread = threading.Thread(target=loop.run)
    began = time.monotonic()
    thread.start()
    assert rounds.wait(8)
    loop.stop()
    thread.join(8)
    assert not thread.is_alive()
    assert time.monotonic() - began < 8
    assert json.loads((host.root / "run/protokube/status.json").read_text())["round"] >= 2
