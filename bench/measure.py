"""Time whole commands against `python -c pass`, interleaved in one run: ratios are stable even on a noisy machine."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence


def seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def interleaved(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """The median time of each command; every round runs each of them once."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(seconds(command))
    return {name: statistics.median(each) for name, each in times.items()}


BARE = [sys.executable, "-c", "pass"]
