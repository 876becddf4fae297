"""Some minutes of random faults on a real cluster: what every build survives, by a fixed seed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clusters.machine_census import Census
from protokube.local.base.paths import Paths
from soak.chaos.catalog import SURVIVED

ROOT = Path(__file__).parent.parent.parent
MINUTES, SEED, STEPS = 3, 41, 100
"""More steps than there is time for, so that all of it happens to one cluster."""
SECONDS = 900.0
"""For a busy machine; a step that began is seen through."""


def test_a_cluster_survives_some_minutes_of_random_faults() -> None:
    asked = ["--minutes", str(MINUTES), "--seed", str(SEED), "--steps", str(STEPS), "--faults", ",".join(SURVIVED)]

    ran = subprocess.run(
        [sys.executable, "soak/run.py", "chaos", *asked], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )

    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-4000:]
    assert f"seeds: {SEED};" in ran.stdout
    assert "histories not decided: 0" in ran.stdout
    assert "healing after" in ran.stdout
    assert "BROKEN" not in ran.stdout


@pytest.mark.parametrize("kind", ["freeze", "io-errors"])
def test_an_interrupted_run_leaves_nothing_behind(kind: str) -> None:
    """Interrupted in the middle of a fault, and once more while it takes everything down."""
    asked = ["--seed", str(SEED), "--steps", str(STEPS), "--faults", kind]
    with subprocess.Popen(
        [sys.executable, "soak/run.py", "chaos", *asked], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        shown = ""
        while "step 1:" not in shown:
            line = running.stdout.readline()
            assert line, shown
            shown += line
        (name,) = re.findall(r"(t[0-9a-f]{6}) with 3 masters is up", shown)
        (root,) = Path("/tmp").glob(f"pkc-*/{name}")
        census = Census.of(Paths.at(root))
        for _ in range(2):
            running.send_signal(signal.SIGINT)
        rest, _ = running.communicate(timeout=SECONDS)

    assert running.returncode == 0, shown + rest
    assert "interrupted; everything was taken back" in rest
    assert "faults: " + kind in rest
    census.nothing_is_left()
    assert not root.parent.exists()
