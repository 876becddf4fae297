"""Run the tests of some folders in one plain pytest per processor, each with its share of the files.

Workers of pytest-xdist each collect all tests, and report each of them three times: for thousands of tests that take
milliseconds, that is a quarter of the time.

    scripts/shares.py tests/unit tests/golden -- --hypothesis-profile fast
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PERCENT = re.compile(r"\[ *(\d+)%\]$")
SUMMARY = re.compile(r" in \d+\.\d+s")
NO_TESTS = 5
"""As pytest exits."""
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)")


def shares(files: Iterable[Path], number: int) -> list[list[Path]]:
    """Divide files so that each share has about as many bytes: the largest first, each to the smallest share."""
    found: list[list[Path]] = [[] for _ in range(number)]
    sizes = [0] * number
    for file in sorted(files, key=lambda each: (-each.stat().st_size, each)):
        least = sizes.index(min(sizes))
        found[least].append(file)
        sizes[least] += file.stat().st_size
    return [sorted(share) for share in found if share]


@dataclass
class Share:
    """One pytest, and what it printed."""

    files: Sequence[Path]
    options: Sequence[str]
    percent: int = 0
    lines: list[str] = field(default_factory=list)
    code: int = 0

    def run(self) -> None:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *self.options, *map(str, self.files)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout or ():
                self.lines.append(line)
                if found := PERCENT.search(line.rstrip()):
                    self.percent = int(found[1])
        self.code = abs(process.returncode)  # negative if a signal ended it, and that is no success

    def summary(self) -> Counter[str]:
        last = next((line for line in reversed(self.lines) if SUMMARY.search(line)), "")
        return Counter({kind: int(number) for number, kind in COUNT.findall(last)})


def main(arguments: Sequence[str]) -> int:
    begun = time.monotonic()
    at = arguments.index("--") if "--" in arguments else len(arguments)
    folders, options = arguments[:at], arguments[at + 1 :]
    files = [file for folder in folders for file in Path(folder).rglob("test_*.py")]
    running = [Share(share, options) for share in shares(files, os.cpu_count() or 1)]
    threads = [threading.Thread(target=each.run) for each in running]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            _show(running)
            thread.join(0.5)
    _show([])
    for each in running:
        if each.code:
            print("".join(each.lines))
    total = sum((each.summary() for each in running), Counter[str]())
    told = ", ".join(f"{number} {kind}" for kind, number in total.items()) or "nothing ran"
    print(f"{told} in {time.monotonic() - begun:.1f} s, {len(running)} processes")
    return max((each.code for each in running), default=NO_TESTS)


def _show(running: Sequence[Share]) -> None:
    """How far each is, on a terminal."""
    if sys.stdout.isatty():
        text = " ".join(f"{each.percent:3}%" for each in running)
        print(f"\r{text:40}\r", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
