"""A part of the official conformance suite of Kubernetes passes on three masters that are nodes."""

from __future__ import annotations

from pathlib import Path

from soak.budget import Budget
from soak.conformance.campaign import Options, run
from soak.conformance.parts import SUBSET
from soak.conformance.render import render

MINUTES = 20.0
"""On a busy machine; a quiet one takes a quarter of it."""


def test_api_machinery_config_services_names_and_workloads_conform(tmp_path: Path) -> None:
    result = run(Options(focus=SUBSET, reports=tmp_path), Budget(MINUTES))

    assert not result.verdict.failed, render(result.verdict)
    assert len(result.verdict.passed) > 50, render(result.verdict)
