"""Without root and without sudo: one sentence for each command, and nothing is changed.

The commands really run as another user, who has no right to any file of the cluster: in one process, which imports all
modules before it gives up its rights, since that user may not be able to read the folder that they are in.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Answer, environment
from protokube.local.base.paths import Paths

NOBODY = 65534
SCRIPT = f"""
import contextlib, importlib, io, json, os, pkgutil, sys
import protokube
for package in ("cli", "local"):
    for each in pkgutil.walk_packages([protokube.__path__[0] + "/" + package], "protokube." + package + "."):
        importlib.import_module(each.name)
from protokube.cli.main import run
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
os.environ["HOME"] = "/nonexistent"
answers = []
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    answers.append([int(code), out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""
ROOTS = [
    ("up",), ("down",), ("down", "--cluster", "theirs"), ("down", "--all", "--yes"), ("stop",), ("start",),
    ("load", "image", "x.tar"),
]  # fmt: skip
READERS = [
    ("status",), ("explain", "member", "etcd-a"), ("etcd", "members"), ("etcd", "adopt", "vol-1"),
    ("etcd", "accept", "vol-1", "--repaired"), ("drill", "kill-master"), ("drill", "watch"), ("rollout", "status"),
    ("rollout", "history"), ("rollout", "undo"), ("export", "kubeconfig"), ("token", "list"),
]  # fmt: skip
LIST = ("list", "-o", "json")


def as_nobody(state: Path, *commands: tuple[str, ...]) -> dict[tuple[str, ...], Answer]:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=json.dumps(commands), capture_output=True, text=True, cwd="/",
        env=environment(PROTOKUBE_STATE=str(state)), timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return {words: Answer(*told) for words, told in zip(commands, json.loads(ran.stdout), strict=True)}


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    """The clusters of root, where anybody may enter: a cluster is closed, the folder that it is in is not."""
    with tempfile.TemporaryDirectory(prefix="pkc-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        paths = Paths.at(Path(folder) / "theirs")
        paths.create()
        paths.database.touch()
        yield Path(folder)


@pytest.fixture(scope="module")
def answers(state: Path) -> dict[tuple[str, ...], Answer]:
    return as_nobody(state, *ROOTS, *((*words, "--cluster", "theirs") for words in READERS), LIST)


@pytest.mark.parametrize("words", ROOTS, ids=" ".join)
def test_what_needs_root_says_so_and_names_itself_with_sudo(
    words: tuple[str, ...], answers: dict[tuple[str, ...], Answer], state: Path
) -> None:
    lines = [each for each in answers[words].err.splitlines() if not each.startswith("  ✗")]

    assert answers[words].code == 4
    assert lines[0] == "error: the local cloud needs root"
    assert lines[-1].startswith(f"  hint: sudo protokube {words[0]}")
    assert (state / "theirs").is_dir()


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_what_reads_says_that_it_may_not_and_of_which_cluster(
    words: tuple[str, ...], answers: dict[tuple[str, ...], Answer]
) -> None:
    answer = answers[*words, "--cluster", "theirs"]

    assert answer.code == 4
    assert answer.err.splitlines()[0] == "error: no permission to read theirs"
    assert answer.err.splitlines()[-1] == "  hint: sudo"


def test_the_list_has_a_cluster_that_cannot_be_read_with_the_reason(answers: dict[tuple[str, ...], Answer]) -> None:
    (told,) = json.loads(answers[LIST].out)

    assert answers[LIST].code == 0
    assert (told["name"], told["state"]) == ("theirs", "not readable")
    assert told["why"] == "it belongs to another user; use sudo"


def test_clusters_in_a_folder_that_may_not_be_entered_are_one_sentence_too(state: Path) -> None:
    state.chmod(0o700)
    try:
        answers = as_nobody(state, ("status",), ("list",), ("token", "list"))
    finally:
        state.chmod(0o755)

    for answer in answers.values():
        assert answer.code == 4
        assert "Permission denied" in answer.err.splitlines()[0]
        assert "sudo" in answer.err
