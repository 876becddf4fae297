"""The whole conformance suite, serial tests included, as a section of `make soak`."""

from __future__ import annotations

from soak.budget import Budget, Outcome, Section
from soak.conformance.campaign import REPORTS, Options
from soak.conformance.campaign import run as run_suite
from soak.conformance.parts import WHOLE


def run(budget: Budget) -> Outcome:
    verdict = run_suite(Options(focus=WHOLE, serial=True, reports=REPORTS), budget).verdict
    ran = len(verdict.passed) + len(verdict.failed)
    found = [f"{name}: {why}" for name, why in sorted(verdict.failed.items())]
    measured = [f"{len(verdict.passed)} of {ran} passed ({verdict.share:.1%}), {len(verdict.not_run)} not run"]
    return Outcome(1, done=1, found=found, measured=measured)


CONFORMANCE = Section("conformance", "the official conformance suite of Kubernetes, all of it", run)
