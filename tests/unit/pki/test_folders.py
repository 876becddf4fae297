"""A component's own folder holds what it was given, closed, and whatever else lies there stays."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from protokube.errors import TryLater
from protokube.pki.folders import give

NAMES = ["ca.crt", "kube-scheduler.crt", "kube-scheduler.key"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in (*NAMES, "ca.key"):
        (tmp_path / name).write_text(f"this is {name}")
    return tmp_path


def test_what_is_given_is_a_copy_and_the_rest_is_not_there(directory: Path) -> None:
    assert give(directory, "kube-scheduler", NAMES) == [f"kube-scheduler/{name}: written" for name in NAMES]
    folder = directory / "kube-scheduler"
    assert sorted(each.name for each in folder.iterdir()) == NAMES
    assert [(folder / name).read_text() for name in NAMES] == [f"this is {name}" for name in NAMES]
    assert [stat.S_IMODE((folder / name).stat().st_mode) for name in NAMES] == [0o644, 0o644, 0o600]
    assert give(directory, "kube-scheduler", NAMES) == []


def test_only_what_changed_is_written_and_what_others_put_there_stays(directory: Path) -> None:
    give(directory, "kube-scheduler", NAMES)
    (directory / "kube-scheduler" / "kubeconfig").write_text("of somebody else")
    key = (directory / "kube-scheduler" / "kube-scheduler.key").stat().st_ino
    (directory / "kube-scheduler.crt").write_text("renewed")

    assert give(directory, "kube-scheduler", NAMES) == ["kube-scheduler/kube-scheduler.crt: written"]
    assert (directory / "kube-scheduler" / "kube-scheduler.crt").read_text() == "renewed"
    assert (directory / "kube-scheduler" / "kubeconfig").read_text() == "of somebody else"
    assert (directory / "kube-scheduler" / "kube-scheduler.key").stat().st_ino == key


def test_what_is_not_there_to_be_given_is_asked_for_again_and_nothing_is_half_given(directory: Path) -> None:
    (directory / "kube-scheduler.key").unlink()
    with pytest.raises(TryLater, match="cannot give kube-scheduler its keys"):
        give(directory, "kube-scheduler", NAMES)
    assert list((directory / "kube-scheduler").iterdir()) == []


def test_a_file_where_the_folder_should_be_is_said_and_left_alone(directory: Path) -> None:
    (directory / "kube-scheduler").write_text("somebody's")
    with pytest.raises(TryLater, match="cannot give kube-scheduler its keys"):
        give(directory, "kube-scheduler", NAMES)
    assert (directory / "kube-scheduler").read_text() == "somebody's"
