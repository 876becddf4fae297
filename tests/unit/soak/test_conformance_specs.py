"""Which tests of the conformance suite run, and what the verdict says of each of them."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from soak.conformance.render import as_data, render
from soak.conformance.specs import Spec, chosen, judge, pattern, read_report

LOST = 'Get "https://127.0.0.1:4443/api/v1": dial tcp 127.0.0.1:4443: connect: connection refused'
MISSING = "registry.k8s.io/e2e-test-images/perl:5.26"
NAME = st.sampled_from([f"[sig-apps] Job number {number} [Conformance]" for number in range(6)])
STATE = st.sampled_from(["passed", "failed", "timedout", "panicked", "interrupted", "skipped", "pending"])
SPEC = st.builds(Spec, name=NAME, state=STATE, message=st.sampled_from(["", LOST, "expected 1, got 2"]))


def a_report(**fields: Any) -> list[dict[str, Any]]:
    plain = {"LeafNodeType": "It", "LeafNodeText": "should run", "ContainerHierarchyTexts": ["[sig-apps] Job"]}
    return [{"SpecReports": [{**plain, "State": "passed", "RunTime": 1_500_000_000, **fields}]}]


def test_a_report_tells_name_state_time_and_reason() -> None:
    (spec,) = read_report(a_report(State="failed", Failure={"Message": "expected\n    1"}))
    assert spec == Spec(name="[sig-apps] Job should run", state="failed", seconds=1.5, message="expected 1")
    assert spec.group == "sig-apps"


def test_setup_of_the_whole_suite_counts_only_if_it_failed() -> None:
    assert read_report(a_report(LeafNodeType="SynchronizedBeforeSuite", LeafNodeText="")) == []
    specs = read_report(
        a_report(
            LeafNodeType="SynchronizedBeforeSuite", LeafNodeText="", ContainerHierarchyTexts=None, State="failed",
            Failure={"Message": "nodes are not ready"},
        )
    )  # fmt: skip
    verdict = judge(["[sig-apps] Job"], specs)
    assert verdict.failed == {
        "SynchronizedBeforeSuite": "failed: nodes are not ready",
        "[sig-apps] Job": "the run ended before it was its turn",
    }


def test_what_is_left_out_says_why() -> None:
    specs = [Spec(name=name, state="skipped") for name in ("a [C]", "b [C]", "c [Serial] [C]", "d")]
    run, left = chosen(specs, r"\[C\]", "b", serial=False)
    assert run == ["a [C]"]
    assert left == {"b [C]": "skipped by 'b'", "c [Serial] [C]": "serial: it needs the cluster for itself"}
    assert chosen(specs, r"\[C\]", "", serial=True)[0] == ["a [C]", "b [C]", "c [Serial] [C]"]


def test_a_test_that_waits_for_an_image_that_cannot_be_had_is_not_run_and_not_failed() -> None:
    spec = Spec(name="a", state="failed", message="timed out", output=f'Failed to pull image "{MISSING}": not found')
    verdict = judge(["a"], [spec], unavailable=[MISSING])
    assert verdict.not_run == {"a": f"image not available: {MISSING}"}
    assert judge(["a"], [spec], unavailable=["another"]).failed == {"a": "failed: timed out"}


def test_a_test_that_insists_on_a_registry_is_not_run_where_none_is_reached() -> None:
    pull = f'Failed to pull image "{MISSING}": failed to resolve reference "{MISSING}": failed to do request: Head'
    spec = Spec(name="a", state="failed", message="timed out", output=f"Pulling image\n{pull}\n")
    assert judge(["a"], [spec]).not_run == {"a": f"it pulls from a registry, and none is reached: {MISSING}"}
    refused = Spec(name="a", state="failed", message="timed out", output=f'Failed to pull image "{MISSING}": denied')
    assert judge(["a"], [refused]).failed == {"a": "failed: timed out"}


def test_under_fire_a_lost_request_counts_apart_if_the_test_passes_again_and_only_then() -> None:
    lost, other = Spec(name="a", state="failed", message=LOST), Spec(name="a", state="failed", message="expected 1")
    good, bad = Spec(name="a", state="passed"), Spec(name="a", state="failed", message=LOST)
    assert judge(["a"], [lost], [good], under_fire=True).retried == {"a": LOST}
    assert judge(["a"], [lost], [bad], under_fire=True).failed == {"a": f"failed: {LOST}; failed again"}
    assert judge(["a"], [other], [good], under_fire=True).failed == {"a": "failed: expected 1; passed when run again"}
    assert judge(["a"], [lost], [good]).failed == {"a": f"failed: {LOST}; passed when run again"}
    assert judge(["a"], [lost], under_fire=True).failed == {"a": f"failed: {LOST}"}
    left_out = Spec(name="a", state="skipped")  # the report of the second run names all tests that there are
    assert judge(["a"], [other], [left_out], under_fire=True).failed == {"a": "failed: expected 1"}


@given(st.lists(SPEC, max_size=8), st.lists(SPEC, max_size=8), st.lists(NAME, unique=True), st.booleans())
def test_every_test_ends_in_one_place_and_a_failure_never_among_those_that_passed(
    first: list[Spec], second: list[Spec], names: list[str], under_fire: bool
) -> None:
    verdict = judge(names, first, second, under_fire=under_fire)
    places = [*verdict.passed, *verdict.retried, *verdict.failed, *verdict.not_run]
    assert len(places) == len(set(places))
    assert set(names) <= set(places)
    last = {spec.name: spec for spec in first}
    assert all(last[name].is_passed for name in verdict.passed)
    assert under_fire or not verdict.retried
    assert 0.0 <= verdict.share <= 1.0


@given(st.sets(st.text(alphabet="ab[]()-. *+?|$^{}\\/:'\"", min_size=1), min_size=1, max_size=5))
def test_a_focus_means_exactly_the_tests_that_it_was_made_of(names: set[str]) -> None:
    focus = re.compile(pattern(names))
    assert all(focus.search(f"Kubernetes e2e suite {name}") for name in names)
    assert not focus.search("Kubernetes e2e suite something else")


def test_the_verdict_names_every_failure_with_its_reason_and_counts_the_rest() -> None:
    verdict = judge(
        ["[sig-apps] a", "[sig-apps] b", "[sig-auth] c"],
        [
            Spec(name="[sig-apps] a", state="passed", seconds=2),
            Spec(name="[sig-apps] b", state="failed", message=LOST),
            Spec(name="[sig-auth] c", state="failed", message="expected 1, got 2"),
        ],
        [Spec(name="[sig-apps] b", state="passed")],
        left={"d": "serial: it needs the cluster for itself"},
        under_fire=True,
    )
    text = render(verdict, ["kill-master: exit code 0, healed after 2.0 s"])
    assert "1 passed\n  sig-apps: 1" in text
    assert "1 not run\n  1: serial: it needs the cluster for itself" in text
    assert "1 failed\n  [sig-auth] c\n      failed: expected 1, got 2" in text
    assert text.endswith("1 of 3 that ran passed (33.3%)")
    assert as_data(verdict)["retried"] == {"[sig-apps] b": LOST}
