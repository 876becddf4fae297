"""Some minutes of random faults on a real cluster: what every build survives, by a fixed seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from soak.chaos.catalog import SURVIVED

ROOT = Path(__file__).parent.parent.parent
MINUTES, SEED, STEPS = 3, 2024, 100
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
