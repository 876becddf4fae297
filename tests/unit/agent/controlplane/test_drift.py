"""Files that somebody changed by hand: restored, and reported for a while."""

from __future__ import annotations

from pathlib import Path

from builders.agent import a_round
from clusters.scenario.edges import FakeClock, HostClock
from protokube.agent.controlplane import drift
from protokube.agent.round import Round

PATH = "/etc/kubernetes/scheduler.yaml"


def looked(round_: Round, content: bytes, *, written: bool) -> list[str]:
    round_.report.warnings.clear()
    drift.note(round_, PATH, content, written=written)
    drift.sync(round_)
    return [f"{each.about}: {each.text}" for each in round_.report.warnings]


def test_a_file_that_is_written_for_the_first_time_or_anew_by_us_is_no_drift(tmp_path: Path) -> None:
    round_ = a_round(tmp_path, clock=HostClock(FakeClock()))
    assert looked(round_, b"one", written=True) == []
    assert looked(round_, b"one", written=False) == []
    assert looked(round_, b"two", written=True) == []


def test_a_file_that_had_the_wanted_content_and_has_to_be_written_again_was_changed_by_hand(tmp_path: Path) -> None:
    clock = FakeClock()
    round_ = a_round(tmp_path, clock=HostClock(clock))
    looked(round_, b"one", written=False)

    assert looked(round_, b"one", written=True) == [f"{PATH}: it was changed by hand, and was restored"]
    clock.advance(drift.SHOWN - 1)
    assert looked(round_, b"one", written=False) == [f"{PATH}: it was changed by hand, and was restored"]
    clock.advance(2)
    assert looked(round_, b"one", written=False) == []
