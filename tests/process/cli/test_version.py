"""`protokube version`: what is here, and what is wrong with it, in one answer."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from builders.command import environment, process
from protokube import __version__


@pytest.fixture
def etcd(tmp_path: Path) -> Path:
    """A folder with an etcd that says its version as the real one does."""
    program = tmp_path / "etcd"
    program.write_text("#!/bin/sh\nprintf 'etcd Version: 3.6.8\\nGit SHA: 1\\n'\n")
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def kubernetes(tmp_path: Path) -> Path:
    folder = tmp_path / "kubernetes"
    folder.mkdir()
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        (folder / name).write_text("#!/bin/sh\necho Kubernetes v1.36.4\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_programs_that_a_user_chose_are_shown_with_their_versions(etcd: Path, kubernetes: Path) -> None:
    chosen = {"PROTOKUBE_ETCD_BIN": str(etcd), "PROTOKUBE_KUBERNETES_BIN": str(kubernetes)}

    shown = json.loads(process("version", "-o", "json", env=chosen).out)

    assert shown["etcd"] == {"version": "3.6.8", "path": str(etcd / "etcd")}
    assert shown["kubernetes"] == {"version": "1.36.4", "path": str(kubernetes)}
    assert shown["protokube"]["version"] == __version__
    assert shown["protokube"]["installed"] == "package"
    assert shown["python"]["version"] == platform.python_version()


def test_a_wrong_folder_is_told_and_hides_nothing_else(etcd: Path) -> None:
    chosen = {"PROTOKUBE_ETCD_BIN": str(etcd), "PROTOKUBE_KUBERNETES_BIN": "/nowhere"}

    answer = process("version", env=chosen)

    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in answer.out.splitlines()}
    assert answer.code == 0
    assert lines["protokube"][0] == __version__
    assert lines["etcd"] == ["3.6.8", str(etcd / "etcd")]
    assert lines["Kubernetes"][0] == "none"
    assert "in /nowhere" in lines["Kubernetes"][1]


def test_a_cache_that_cannot_be_read_hides_nothing_else() -> None:
    folder = f"/{'x' * 300}"

    answer = process("version", env={"PROTOKUBE_CACHE": folder})

    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in answer.out.splitlines()}
    assert (answer.code, lines["protokube"][0]) == (0, __version__)
    assert lines["Kubernetes"] == ["none", f"{folder}/kubernetes cannot be read: File name too long"]


def test_an_etcd_that_loses_data_is_not_what_up_would_take(etcd: Path) -> None:
    (etcd / "etcd").write_text("#!/bin/sh\necho etcd Version: 3.5.1\n")

    shown = json.loads(process("version", "-o", "json", env={"PROTOKUBE_ETCD_BIN": str(etcd)}).out)

    assert "loses data" in shown["etcd"]["problem"]
    assert "version" not in shown["etcd"]


def test_the_short_answer_stays() -> None:
    assert process("--version", env=environment()).out == f"protokube, version {__version__}\n"
