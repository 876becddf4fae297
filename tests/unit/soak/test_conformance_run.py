"""What `make conformance` can be asked for, and what it refuses before anything is begun."""

from __future__ import annotations

import pytest

from soak.conformance.campaign import REPORTS
from soak.conformance.parts import API, PARTS, SUBSET, WHOLE
from soak.conformance.run import read_arguments
from soak.conformance.specs import Spec, chosen

NAMES = [
    "[sig-api-machinery] Watchers should observe add, update, and delete [Conformance]",
    "[sig-api-machinery] AdmissionWebhook [Privileged:ClusterAdmin] should be able to deny pod [Conformance]",
    "[sig-api-machinery] Servers with support for API chunking should support continue [Slow] [Conformance]",
    "[sig-node] Lease lease API should be available [Conformance]",
    "[sig-node] Pods should be submitted and removed [NodeConformance] [Conformance]",
    "[sig-apps] Deployment should not count",
]


def picked(focus: str) -> list[str]:
    run, _ = chosen([Spec(name=name, state="skipped") for name in NAMES], focus, "", serial=False)
    return sorted(run)


def test_without_options_everything_of_the_suite_runs() -> None:
    options, minutes = read_arguments([])
    assert (options.focus, options.skip, options.drill, options.serial, minutes) == (WHOLE, "", "", False, None)
    assert options.reports == REPORTS
    assert picked(options.focus) == sorted(NAMES[:5])


def test_a_part_is_known_by_its_name() -> None:
    for name, focus in PARTS.items():
        assert read_arguments(["--part", name])[0].focus == focus
    assert picked(API) == sorted([NAMES[0], NAMES[2], NAMES[3]])
    assert picked(SUBSET) == sorted([NAMES[0], NAMES[1]])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--part", "api", "--focus", "x"], "name one of them"),
        (["--part", "apis"], "invalid choice"),
        (["--focus", "("], "no regular expression"),
        (["--skip", "["], "no regular expression"),
        (["--drill", "kill-everybody"], "invalid choice"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        read_arguments(words)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err
