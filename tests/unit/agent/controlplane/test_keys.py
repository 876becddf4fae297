"""Certificates are looked at as often as their lives ask for, and an authority's end is told long before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders.agent import a_round
from clusters.scenario.edges import FakeClock, HostClock
from clusters.scenario.host import wanted_of
from protokube.agent.controlplane import keys
from protokube.agent.loop import IDLE, Pace
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.cli.wiring import machine_keys
from protokube.launch.prepare import ensure_authorities
from protokube.manifests.etcd import PKI
from protokube.pki.authority import YEARS, make_authority
from protokube.pki.expiry import end_of
from protokube.pki.renewal import DAY
from protokube.store.memory import MemoryStore

MINUTE = 60.0


class Counting:
    """Keys that are always in order."""

    def __init__(self) -> None:
        self.looks = 0

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        self.looks += 1
        return [] if names else ["nothing was asked for"]

    def sync_shared(self) -> Sequence[str]:
        return []

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        return []


def next_turn(round_: Round) -> Round:
    return Round(edges=round_.edges, wanted=round_.wanted, report=Report())


def looks_in(seconds: float, lifetime: float, tmp_path: Path) -> int:
    """How often an idle agent looks, with nothing but its own pace to wake it."""
    clock, counting, pace = FakeClock(), Counting(), Pace(jitter=lambda: 1.0)
    wanted = replace(wanted_of(), certificate_lifetime=lifetime)
    round_ = a_round(tmp_path, wanted=wanted, clock=HostClock(clock), keys=counting)
    passed = 0.0
    while passed < seconds:
        keys.ensure(round_, ["etcd-a-peer"])
        pause = pace.after(round_)
        clock.advance(pause)
        passed += pause
        round_ = next_turn(round_)
    return counting.looks


def test_an_agent_wakes_in_time_for_certificates_of_a_minute(tmp_path: Path) -> None:
    assert 79 <= looks_in(MINUTE, MINUTE, tmp_path) <= 81


def test_a_year_is_looked_at_every_ten_minutes_and_wakes_nobody(tmp_path: Path) -> None:
    assert 6 <= looks_in(3600, 365 * DAY, tmp_path) <= 7
    round_ = a_round(tmp_path, keys=Counting())
    keys.ensure(round_, ["etcd-a-peer"])
    assert Pace(jitter=lambda: 0.5).after(round_) == IDLE


def test_the_earliest_of_several_moments_is_the_next_round(tmp_path: Path) -> None:
    round_ = a_round(tmp_path)
    for seconds in (3.0, 0.5, 7.0):
        round_.within(seconds)

    assert Pace(jitter=lambda: 0.5).after(round_) == 0.5


@pytest.mark.parametrize("lifetime", [MINUTE, 90 * DAY])
def test_certificates_are_issued_for_as_long_as_the_configuration_says(tmp_path: Path, lifetime: float) -> None:
    clock, store = HostClock(FakeClock()), MemoryStore("memory://keys")
    wanted = replace(wanted_of(), certificate_lifetime=lifetime)
    ensure_authorities(store, wanted)
    issuing = machine_keys(store, wanted, tmp_path, clock)

    assert len(issuing.sync([keys.CLIENT])) == 2, "the certificate, and who signed it"
    assert issuing.sync([keys.CLIENT]) == [], "what was issued just now is not old"
    end = end_of((tmp_path / f"{keys.CLIENT}.crt").read_bytes())
    assert end - clock.now() == pytest.approx(lifetime, abs=1)


@pytest.mark.parametrize(("days", "level"), [(400, ""), (200, "warnings"), (20, "person"), (-1, "person")])
def test_an_authority_that_ends_is_told_and_near_its_end_needs_a_person(tmp_path: Path, days: int, level: str) -> None:
    round_ = a_round(tmp_path)
    folder = round_.edges.inside(PKI)
    folder.mkdir(parents=True)
    now = round_.edges.clock.now()
    made = make_authority("etcd-peer-ca", now + days * DAY - YEARS * 365 * DAY + 60)
    (folder / "etcd-peer-ca.crt").write_bytes(made.certificate)

    for _ in range(2):  # it is read once, and said in every round
        round_ = next_turn(round_)
        keys.sync(round_)
        notes = {"warnings": round_.report.warnings, "person": round_.report.person}
        assert [name for name, found in notes.items() if found] == ([level] if level else [])
        for note in notes.get(level, []):
            words = f"ends in {days} days" if days > 0 else "has ended, and so has everything it signed"
            assert note.text == f"the authority etcd-peer-ca {words}"
            assert "another authority" in note.hint
        (folder / "etcd-peer-ca.crt").unlink(missing_ok=True)
