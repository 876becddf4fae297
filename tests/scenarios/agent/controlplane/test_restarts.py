"""Restarts of components by renewed certificates, in minutes of a fake clock: one master with real keys on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from builders.agent import Alone, a_round
from builders.config import completed
from clusters.scenario.edges import FakeClock, HostClock, MemoryKeys
from protokube.agent.controlplane import components
from protokube.agent.controlplane.restarts import LAST, NOTICED
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.cli.wiring import machine_keys
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.launch.prepare import ensure_authorities
from protokube.manifests.etcd import PKI
from protokube.store.memory import MemoryStore

MANIFEST = "etc/kubernetes/manifests/kube-apiserver.manifest"
SHORT = 160.0
ALL = {"i-1": "10.0.0.1", "i-2": "10.0.0.2", "i-3": "10.0.0.3"}


def said_of_keys(manifest: Path) -> str:
    found = re.search(r"protokube.io/keys: .*", manifest.read_text())
    return found[0] if found else ""


class Master:
    """One with real certificates, and a clock that the test sets."""

    def __init__(self, root: Path, lifetime: float) -> None:
        wanted = from_config(completed(cloud="local", masters=3, name="laptop", dnsController={"enabled": False}))
        self.wanted: MasterConfig = replace(wanted, certificate_lifetime=lifetime)
        self.common, store = FakeClock(), MemoryStore(f"memory://{root.name}")
        clock = HostClock(self.common)
        ensure_authorities(store, self.wanted)
        keys = machine_keys(store, self.wanted, root / PKI.lstrip("/"), clock)
        self.manifest = root / MANIFEST
        self.manifest.parent.mkdir(parents=True)
        self.manifest.write_text("of yesterday")
        self.presence = Alone(ALL, serving=list(ALL))
        self.round_ = a_round(root, wanted=self.wanted, clock=clock, keys=keys, store=store, presence=self.presence)

    def round(self, passed: float = 0.0) -> str:
        """What the manifest of the API server says of keys afterwards."""
        self.common.advance(passed)
        self.round_ = Round(edges=self.round_.edges, wanted=self.wanted, report=Report())
        components.sync(self.round_)
        return said_of_keys(self.manifest)

    def starts(self, seconds: float, step: float = 2.0) -> Iterator[float]:
        """When its manifest changes, each time as seconds since 1970."""
        before = self.round()
        for _ in range(int(seconds / step)):
            if (now := self.round(step)) != before:
                yield self.round_.edges.clock.now()
                before = now


def test_the_control_plane_is_started_once_for_each_renewal_and_all_of_it_at_once(tmp_path: Path) -> None:
    master = Master(tmp_path, SHORT)

    seen = list(master.starts(3 * SHORT, step=4.0))

    assert 3 <= len(seen) <= 6  # renewed at half of its life, started at the end of it at the latest
    assert all(later - at > SHORT / 4 for at, later in pairwise(seen))
    manifests = sorted(master.manifest.parent.glob("kube-*.manifest"))
    assert len(manifests) == 3
    assert len({said_of_keys(each) for each in manifests}) == 1


def test_a_certificate_that_cannot_be_read_for_a_moment_starts_nothing(tmp_path: Path) -> None:
    master = Master(tmp_path, SHORT)
    before = master.round()
    for content in (b"nonsense", None):
        master.round_.edges.keys = MemoryKeys()
        for file in (tmp_path / PKI.lstrip("/")).glob("kube-scheduler.crt"):
            file.unlink() if content is None else file.write_bytes(content)
        assert master.round(1.0) == before != ""


def test_an_api_server_that_gets_no_leave_goes_on_and_asks_in_each_round(tmp_path: Path) -> None:
    master = Master(tmp_path, SHORT)
    master.round()
    master.presence.grants_restart = False

    assert not list(master.starts(0.7 * SHORT, step=4.0))
    assert master.presence.restart_requests > 1
    before, master.presence.grants_restart = master.round(), True
    assert master.round() != before


@pytest.mark.parametrize(
    ("serving", "least", "most"), [(["i-1", "i-2"], 1.0, 1.4), (["i-2"], 1 - LAST, 1 - LAST + 0.03)]
)
def test_while_another_api_server_is_away_ours_goes_on_until_its_end_and_is_started_before_if_nobody_misses_it(
    tmp_path: Path, serving: list[str], least: float, most: float
) -> None:
    master = Master(tmp_path, SHORT)
    master.round()
    began = master.round_.edges.clock.now()
    master.round_.edges.presence = Alone(ALL, serving=serving)

    first = next(master.starts(2 * SHORT))

    assert least * SHORT - 1 <= first - began <= most * SHORT


def test_long_lives_restart_nothing(tmp_path: Path) -> None:
    master = Master(tmp_path, NOTICED)
    assert master.round() == ""
    assert not list(master.starts(2 * NOTICED, step=120.0))
