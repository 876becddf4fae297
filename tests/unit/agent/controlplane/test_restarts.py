"""Components get renewed certificates by being started again, one master at a time, and only where lives are short."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import Alone, a_round
from builders.config import completed
from clusters.scenario.edges import FakeClock, HostClock, MemoryKeys
from protokube.agent.controlplane import components, restarts
from protokube.agent.controlplane.restarts import LAST, NOTICED, SOON_RENEWED, Pairs, When, when, written_in
from protokube.agent.launchdata import from_config
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.agent.wanted import MasterConfig
from protokube.cli.wiring import machine_keys
from protokube.config.pki import SHORTEST_FOR_COMPONENTS
from protokube.local.bringup import ensure_authorities
from protokube.manifests.etcd import PKI
from protokube.spec.fields import seconds
from protokube.store.memory import MemoryStore

MANIFEST = "etc/kubernetes/manifests/kube-apiserver.manifest"
SHORT = 160.0
ALL = {"i-1": "10.0.0.1", "i-2": "10.0.0.2", "i-3": "10.0.0.3"}
START = 1_800_000_000.0
moments = st.floats(START, START + 1e6, allow_nan=False)
lengths = st.floats(60.0, NOTICED)


def due(now: float, length: float, left: float) -> tuple[Pairs, Pairs]:
    """A component with so much left of the life of its certificates, and what was issued for it a moment ago."""
    return Pairs("a" * 16, now + left * length), Pairs("b" * 16, now + 0.95 * length)


@given(moments, lengths, st.floats(-3.0, 0.5), st.booleans())
def test_whoever_serves_never_goes_without_its_turn(now: float, length: float, left: float, serve: bool) -> None:
    assert when(*due(now, length, left), now, length, idle=False, others_serve=serve) is not When.NOW


@given(moments, lengths, st.floats(-5.0, LAST - 0.001), st.booleans())
def test_what_serves_nobody_and_ends_soon_waits_for_nobody(now: float, length: float, left: float, serve: bool) -> None:
    assert when(*due(now, length, left), now, length, idle=True, others_serve=serve) is When.NOW


@given(moments, lengths, st.floats(0.001, 0.5))
def test_nobody_that_serves_begins_while_the_api_server_of_another_is_away(
    now: float, length: float, left: float
) -> None:
    assert when(*due(now, length, left), now, length, idle=False, others_serve=False) is When.LATER


@given(moments, lengths, st.floats(-3.0, 0.0), st.booleans())
def test_whose_certificate_has_ended_waits_for_its_turn_only(
    now: float, length: float, left: float, serve: bool
) -> None:
    assert when(*due(now, length, left), now, length, idle=False, others_serve=serve) is When.IN_TURN


def test_it_is_not_started_with_what_is_about_to_be_renewed_itself() -> None:
    before, after = due(START, SHORT, 0.5)
    assert when(before, after, START, SHORT, idle=False, others_serve=True) is When.IN_TURN
    after = replace(after, ends=START + SHORT / 2 + SHORT * SOON_RENEWED)
    assert when(before, after, START, SHORT, idle=False, others_serve=True) is When.LATER


@given(st.text("0123456789abcdef", min_size=16, max_size=16), st.integers(0, 4_000_000_000))
def test_what_a_manifest_says_is_read_back(digest: str, ends: int) -> None:
    pairs = Pairs(digest, float(ends))
    assert written_in(f"    {restarts.ANNOTATION}: {pairs}\n") == pairs
    assert written_in(f"    {restarts.ANNOTATION}: '{pairs}'\n") == pairs
    assert written_in("annotations: {}\n") is None


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

    def starts(self, seconds: float, step: float = 2.0) -> list[float]:
        """When its manifest changed, each time as seconds since 1970."""
        seen, before = [], self.round()
        for _ in range(int(seconds / step)):
            if (now := self.round(step)) != before:
                seen.append(self.round_.edges.clock.now())
                before = now
        return seen


def test_the_control_plane_is_started_once_for_each_renewal_and_all_of_it_at_once(tmp_path: Path) -> None:
    master = Master(tmp_path, SHORT)

    seen = master.starts(3 * SHORT, step=4.0)

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

    assert master.starts(0.7 * SHORT, step=4.0) == []
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

    first, *_ = master.starts(2 * SHORT)

    assert least * SHORT - 1 <= first - began <= most * SHORT


def test_long_lives_restart_nothing(tmp_path: Path) -> None:
    master = Master(tmp_path, NOTICED)
    assert master.round() == ""
    assert master.starts(2 * NOTICED, step=120.0) == []


def test_the_configuration_warns_of_exactly_those_lives_at_which_components_are_restarted() -> None:
    assert seconds(SHORTEST_FOR_COMPONENTS) == NOTICED


def test_each_component_goes_by_the_certificates_it_uses(tmp_path: Path) -> None:
    round_ = a_round(tmp_path, wanted=from_config(completed(cloud="local", masters=3, name="laptop")))
    found = {each.name: restarts.used(round_, each) for each in round_.wanted.components}
    assert found == {
        "kube-apiserver": [
            "front-proxy-client", "kube-apiserver", "kube-apiserver-etcd-client", "kube-apiserver-kubelet-client"
        ],
        "kube-controller-manager": ["kube-controller-manager"],
        "kube-scheduler": ["kube-scheduler"],
        "dns-controller": ["dns-controller"],
    }  # fmt: skip


def test_the_certificate_of_a_kubeconfig_that_only_a_file_of_the_component_names_counts_too(tmp_path: Path) -> None:
    wanted = from_config(completed(cloud="local", masters=3, name="laptop"), nodes=True)
    (proxy,) = [each for each in wanted.components if each.name == "kube-proxy"]
    assert restarts.used(a_round(tmp_path, wanted=wanted), proxy) == ["kube-proxy"]


@pytest.mark.parametrize(
    ("live", "serving", "answer"),
    [(ALL, ["i-2", "i-3"], True), (ALL, ["i-1", "i-2"], False), ({"i-1": ""}, [], True), (None, [], False)],
)
def test_whether_the_others_serve(
    tmp_path: Path, live: dict[str, str] | None, serving: list[str], answer: bool
) -> None:
    assert restarts.others_serve(a_round(tmp_path, presence=Alone(live, serving=serving))) is answer
