"""Kubelets on a machine whose Debian packages cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.cli.shared.progress import Progress
from protokube.cli.up.kubelets import Kubelets, with_packages
from protokube.errors import ProtokubeError

FAILING = "#!/bin/sh\necho 'E: Could not resolve' >&2\nexit 100\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_without_apt_there_are_no_kubelets_and_the_reason_is_one_line(path: Path, tmp_path: Path) -> None:
    found = with_packages(Kubelets(True), tmp_path / "cache", Progress(quiet=True), needed=False)

    assert found == Kubelets(False, "containerd is not on this machine (no apt-get and no dpkg-deb)")


def test_with_an_apt_that_reaches_nothing_there_are_none_either(path: Path, tmp_path: Path) -> None:
    for name in ("apt-get", "dpkg-deb"):
        (path / name).write_text(FAILING)
        (path / name).chmod(0o755)

    found = with_packages(Kubelets(True), tmp_path / "cache", Progress(quiet=True), needed=False)

    assert not found.run
    assert found.missing
    assert "\n" not in str(found)


def test_who_asked_for_kubelets_gets_the_error_and_not_a_cluster_without(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ProtokubeError, match="containerd is not on this machine"):
        with_packages(Kubelets(True), tmp_path / "cache", Progress(quiet=True), needed=True)


def test_a_cache_that_cannot_be_written_is_a_reason_and_no_bug(path: Path, tmp_path: Path) -> None:
    for name in ("apt-get", "dpkg-deb"):
        (path / name).write_text(FAILING)
        (path / name).chmod(0o755)
    (tmp_path / "cache").write_text("a file, and no folder")

    found = with_packages(Kubelets(True), tmp_path / "cache", Progress(quiet=True), needed=False)

    assert found.missing
    with pytest.raises(ProtokubeError):
        with_packages(Kubelets(True), tmp_path / "cache", Progress(quiet=True), needed=True)
