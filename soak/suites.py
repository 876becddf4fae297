"""Sections that run tests of the test suite for longer: each round is one run of pytest with larger parameters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from soak.budget import Budget, Outcome, Section, say

ROOT = Path(__file__).resolve().parent.parent
TIDYING = 120.0
"""Seconds that an interrupted run has to take its clusters down."""


def pytest(budget: Budget, files: Sequence[str], **variables: str) -> tuple[bool, str]:
    """Run pytest; return whether it ended in time, and its failures. On timeout it gets SIGINT, to clean up."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            output, _ = running.communicate(timeout=budget.left)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=TIDYING)
            return False, ""
    return True, "" if running.returncode == 0 else output[-4000:]


def suite(name: str, description: str, times: int, files: Sequence[str], **variables: str) -> Section:
    def run(budget: Budget) -> Outcome:
        outcome = Outcome(times)
        for number in range(1, times + 1):
            if budget.over:
                break
            ended, found = pytest(budget, files, **variables)
            if found:
                outcome.found.append(found)
            outcome.done += ended
            say(f"{name}: round {number} of {times}{f': BROKEN: {found}' if found else '' if ended else ': cut short'}")
        return outcome

    return Section(name, description, run)


WIPED = suite(
    "wiped",
    "two wiped disks of three, in 2 ways, the survivor 0, 5 and 60 s late, 5 rounds of 4 times each, on real etcd",
    5,
    ["tests/host/test_wiped.py"],
    PROTOKUBE_WIPED_TIMES="4",
    PROTOKUBE_WIPED_AT_ONCE="6",
)
HISTORIES = suite(
    "histories",
    "20,000 random histories of whole clusters under a fake clock",
    1,
    ["tests/scenarios", "-n", "auto"],
    PROTOKUBE_HISTORIES="20000",
    PROTOKUBE_EVERY_CALL="1",
)
COMPARISONS = suite(
    "comparisons",
    "1,000 comparisons of healthy members under load, on a cluster of hosts and on plain etcd; planted split brains",
    1,
    ["tests/host/test_split_brain.py", "tests/host/test_etcd_compare.py"],
    PROTOKUBE_COMPARISONS="1000",
)
FAULTS = suite(
    "faults",
    "provider silent, name server silent, disk full, clock an hour off: 60 s each",
    1,
    ["tests/host/test_faults.py"],
    PROTOKUBE_FAULT_SECONDS="60",
)
RENEWALS = suite(
    "renewals",
    "short-lived certificates, renewed 5 times on real etcd and on real Kubernetes while somebody writes",
    1,
    ["tests/host/test_etcd_certificates.py", "tests/e2e/test_renewal.py"],
    PROTOKUBE_RENEWALS="5",
)
