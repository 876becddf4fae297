"""Components get renewed certificates by being started again, one master at a time, and only where lives are short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import Alone, a_round
from builders.config import completed
from protokube.agent.controlplane import restarts
from protokube.agent.controlplane.restarts import LAST, NOTICED, SOON_RENEWED, Pairs, When, when, written_in
from protokube.config.pki import SHORTEST_FOR_COMPONENTS
from protokube.launch.derive import from_config
from protokube.spec.fields import seconds

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
