"""Debian packages, unpacked by stand-ins for apt-get and dpkg-deb; and tools of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fakes.programs import a_debian
from protokube.binaries import executables
from protokube.errors import Refused, TryLater


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_package_is_unpacked_once_and_lists_are_fetched_where_they_are_missing(cache: Path, only_path: Path) -> None:
    log = a_debian(only_path, "3.4.23")
    found = executables.unpack("etcd-server", cache)
    assert found == cache / "etcd-server"
    assert (found / "usr" / "bin" / "etcd").exists()
    assert [line.split()[-1] for line in log.read_text().splitlines()] == ["etcd-server", "update", "etcd-server"]
    assert "APT::Sandbox::User=root" in log.read_text()
    assert executables.unpack("etcd-server", cache) == found
    assert len(log.read_text().splitlines()) == 3
    assert [entry.name for entry in cache.iterdir()] == ["etcd-server"]


def test_without_debian_a_missing_package_is_refused(cache: Path, only_path: Path) -> None:
    if shutil.which("apt-get", path="/usr/sbin:/sbin"):
        pytest.fail("apt-get lies where root's programs do: this machine is not as others are")
    with pytest.raises(Refused, match="etcd-server is not on this machine") as refused:
        executables.unpack("etcd-server", cache)
    assert refused.value.saw == "no apt-get and no dpkg-deb"


def test_a_package_that_cannot_be_fetched_is_for_later(cache: Path, only_path: Path) -> None:
    a_debian(only_path, "3.4.23")
    (only_path / "apt-get").write_text("#!/bin/sh\necho 'Temporary failure resolving' >&2\nexit 100\n")
    with pytest.raises(TryLater, match="apt-get") as later:
        executables.unpack("etcd-server", cache)
    assert later.value.saw == "Temporary failure resolving"
    assert list(cache.iterdir()) == []
