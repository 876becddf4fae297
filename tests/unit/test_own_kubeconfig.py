"""No test, soak or bench that runs `up` gets into the kubeconfig of whoever runs it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from builders.command import environment

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "PROTOKUBE_KUBECONFIG"
RUNS_UP = re.compile(r'COMMAND, "up"|"-m", "protokube", "up"')
TURNED_OFF = re.compile(
    rf'{VARIABLE}"?\]? ?[:=] ?"0"|env=(cluster_)?environment\(|env = environment\(|^import local$', re.MULTILINE
)


def test_merging_is_off_for_all_that_tests_run() -> None:
    assert os.environ[VARIABLE] == "0"
    assert environment()[VARIABLE] == "0"
    assert environment(**{VARIABLE: "1"})[VARIABLE] == "1", "a test about it says so, with a KUBECONFIG of its own"


def test_every_file_that_runs_up_by_itself_turns_merging_off() -> None:
    files = [
        file
        for folder in ("tests", "soak", "bench")
        for file in (ROOT / folder).rglob("*.py")
        if file != Path(__file__)
    ]
    found = {str(file.relative_to(ROOT)): file.read_text() for file in files if RUNS_UP.search(file.read_text())}

    assert {"bench/local.py", "bench/rollout.py", "tests/host/test_up.py"} <= set(found)
    assert [name for name, text in found.items() if not TURNED_OFF.search(text)] == []
