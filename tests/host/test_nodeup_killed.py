"""nodeup is killed with SIGKILL, anywhere: the next run ends in the same tree as one that nobody killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.nodeup import a_root
from builders.nodeup_machine import SERVED, a_bare_root, the_tasks, tree_of

CHILD = Path(__file__).parent / "nodeup_child.py"
TESTS = Path(__file__).parents[1]


class Nodeups:
    """Runs nodeup in children that may kill themselves."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS,
            env={"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}", "PATH": "/usr/bin:/bin"},
        )  # fmt: skip

    def __call__(self, root: Path, version: str, **when: int) -> tuple[int, dict[str, str]]:
        """The exit status, and the results by key; none of a run that was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"root": str(root), "version": version, **when}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return int(answer["status"]), {key: result for key, result, _ in answer["outcomes"]}

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def nodeup() -> Iterator[Nodeups]:
    nodeups = Nodeups()
    yield nodeups
    nodeups.close()


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    return a_root(tmp_path / "accounts").root / "etc"


def a_machine(folder: Path, accounts: Path, nodeup: Nodeups, version: str = "") -> Path:
    """A bare one, or one on which a version is and is served."""
    a_bare_root(folder, accounts)
    if version:
        assert nodeup(folder, version)[0] == 0
        (folder / SERVED[1:]).write_bytes((folder / "etc/web/conf").read_bytes())
        (folder / "run/restarts").unlink(missing_ok=True)
    return folder


def judge(root: Path, want: Path, nodeup: Nodeups, what: str) -> None:
    """After a kill: one run makes the tree that was wanted, and another one changes nothing."""
    status, results = nodeup(root, "2")
    assert status == 0, what
    assert set(results.values()) <= {"changed", "unchanged"}, (what, results)
    served, restarts = (root / SERVED[1:]).read_bytes(), (root / "run/restarts").read_bytes()
    assert served == b"version 2\n", what
    (root / "run/restarts").write_bytes((want / "run/restarts").read_bytes())
    assert tree_of(root) == tree_of(want), what
    assert not (root / "run/protokube/nodeup/restarts").exists() or not list(
        (root / "run/protokube/nodeup/restarts").iterdir()
    )
    (root / "run/restarts").write_bytes(restarts)

    before = tree_of(root, times=True)
    assert set(nodeup(root, "2")[1].values()) == {"unchanged"}, what
    assert tree_of(root, times=True) == before, what


@pytest.mark.parametrize("version", ["", "1"])
def test_killed_before_each_change_of_a_file_the_next_run_ends_in_the_same_tree(
    tmp_path: Path, accounts: Path, nodeup: Nodeups, version: str
) -> None:
    want = a_machine(tmp_path / "want", accounts, nodeup, version)
    assert nodeup(want, "2")[0] == 0
    assert (want / "run/restarts").read_text() == "restarted\n"
    step, status = -1, -1
    while status != 0:
        step += 1
        root = a_machine(tmp_path / str(step), accounts, nodeup, version)
        status, _ = nodeup(root, "2", step=step)
        assert status in (0, signal.SIGKILL)
        judge(root, want, nodeup, f"killed at step {step}")
    assert step > (25 if version else 50)


@pytest.mark.parametrize("version", ["", "1"])
def test_killed_at_each_boundary_of_tasks_the_next_run_ends_in_the_same_tree(
    tmp_path: Path, accounts: Path, nodeup: Nodeups, version: str
) -> None:
    want = a_machine(tmp_path / "want", accounts, nodeup, version)
    assert nodeup(want, "2")[0] == 0
    for event in range(2 * len(the_tasks("2"))):
        root = a_machine(tmp_path / str(event), accounts, nodeup, version)
        assert nodeup(root, "2", event=event)[0] == signal.SIGKILL
        judge(root, want, nodeup, f"killed at event {event}")


def test_killed_again_and_again_it_still_ends_in_the_same_tree(tmp_path: Path, accounts: Path, nodeup: Nodeups) -> None:
    want = a_machine(tmp_path / "want", accounts, nodeup, "1")
    nodeup(want, "2")
    chance = random.Random(17)
    for number in range(10):
        root = a_machine(tmp_path / str(number), accounts, nodeup, "1")
        steps = [chance.randrange(1, 12) for _ in range(6)]
        for step in steps:
            nodeup(root, "2", step=step)
        judge(root, want, nodeup, f"killed at {steps}")


def test_no_restart_is_made_twice_or_without_a_change(tmp_path: Path, accounts: Path, nodeup: Nodeups) -> None:
    root = a_machine(tmp_path / "root", accounts, nodeup, "1")
    assert nodeup(root, "1")[1]["unit web.service"] == "unchanged"
    assert not (root / "run/restarts").exists()

    assert nodeup(root, "2")[1]["unit web.service"] == "changed"
    assert nodeup(root, "2")[1]["unit web.service"] == "unchanged"
    assert (root / "run/restarts").read_text() == "restarted\n"


def test_what_is_not_declared_is_not_touched(tmp_path: Path, accounts: Path, nodeup: Nodeups) -> None:
    root = a_machine(tmp_path / "root", accounts, nodeup)
    before = tree_of(root, times=True)
    nodeup(root, "1")
    after = tree_of(root, times=True)

    assert after["etc/theirs"] == before["etc/theirs"]
    new = {name for name in after if name not in before}
    assert new == {
        "etc/web", "etc/web/conf", "etc/web/key", "etc/first-boot", "etc/modules-load.d",
        "etc/modules-load.d/none.conf", "opt", "opt/deep", "opt/deep/er", "opt/deep/er/file", "opt/now",
        "usr/local/bin/web", "var/lib/etcd", "var/log", "run/served", "run/restarts",
    }  # fmt: skip
