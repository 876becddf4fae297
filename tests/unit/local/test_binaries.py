"""Which etcd is taken, with programs that say they are one."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.local import binaries


def a_program(folder: Path, name: str, says: str) -> Path:
    """A program that prints this, whatever it is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat <<END\n{says}\nEND\n")
    program.chmod(0o755)
    return program


def an_etcd(folder: Path, version: str) -> Path:
    return a_program(folder, "etcd", f"etcd Version: {version}\nGit SHA: Not provided\nGo Version: go1.19.8")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH but what a shell script needs; nothing is chosen by the user."""
    folder = tmp_path / "path"
    folder.mkdir()
    for needed in ("cat", "sh"):
        (folder / needed).symlink_to(shutil.which(needed) or "")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(binaries.CHOSEN, raising=False)
    return folder


def in_cache(cache: Path, version: str) -> Path:
    return an_etcd(cache / "etcd-server" / "usr" / "bin", version)


def test_the_users_choice_comes_first(cache: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_cache(cache, "3.5.16")
    an_etcd(path, "3.5.16")
    chosen = an_etcd(tmp_path / "chosen", "3.4.23")
    monkeypatch.setenv(binaries.CHOSEN, str(tmp_path / "chosen"))
    assert binaries.find("etcd", cache) == chosen


def test_a_choice_that_is_not_there_is_refused_and_nothing_else_is_taken(
    cache: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_cache(cache, "3.5.16")
    monkeypatch.setenv(binaries.CHOSEN, str(tmp_path / "nowhere"))
    with pytest.raises(Refused, match="there is no etcd in") as refused:
        binaries.find("etcd", cache)
    assert binaries.CHOSEN in refused.value.hint


@pytest.mark.parametrize("version", ["3.5.0", "3.5.1", "3.5.2"])
def test_one_that_loses_data_is_taken_only_when_it_is_named_and_with_a_warning(
    version: str,
    cache: Path,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chosen = an_etcd(tmp_path / "chosen", version)
    monkeypatch.setenv(binaries.CHOSEN, str(tmp_path / "chosen"))
    with caplog.at_level(logging.WARNING):
        assert binaries.find("etcd", cache) == chosen
    assert f"is {version}, which loses data when it is killed" in caplog.text


@pytest.mark.parametrize("version", ["3.5.0", "3.5.1", "3.5.2", "v3.5.1"])
def test_one_that_loses_data_is_passed_over(
    version: str, cache: Path, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_cache(cache, version)
    good = an_etcd(path, "3.4.23")
    with caplog.at_level(logging.INFO):
        assert binaries.find("etcd", cache) == good
    assert "loses data when it is killed: looking further" in caplog.text


@pytest.mark.parametrize("version", ["3.4.0", "3.4.23", "3.5.3", "3.5.10", "3.5.16", "3.5.20", "3.6.0", "3.6.1"])
def test_every_other_one_is_taken_from_the_cache_before_the_path(version: str, cache: Path, path: Path) -> None:
    cached = in_cache(cache, version)
    an_etcd(path, "3.4.23")
    assert binaries.find("etcd", cache) == cached


def test_one_that_does_not_run_is_passed_over(cache: Path, path: Path) -> None:
    broken = in_cache(cache, "3.5.16")
    broken.write_text("#!/nowhere/interpreter\n")
    good = an_etcd(path, "3.4.23")
    assert binaries.find("etcd", cache) == good


def test_etcdctl_is_found_too(cache: Path, path: Path) -> None:
    client = a_program(path, "etcdctl", "etcdctl version: 3.5.16\nAPI version: 3.5")
    assert binaries.find("etcdctl", cache) == client
    assert binaries.version(client) == "3.5.16"


def test_without_debian_a_missing_etcd_is_refused_with_the_way_out(cache: Path, path: Path) -> None:
    if shutil.which("apt-get", path="/usr/sbin:/sbin"):
        pytest.fail("apt-get lies where root's programs do: this machine is not as others are")
    with pytest.raises(Refused, match="etcd is not on this machine") as refused:
        binaries.find("etcd", cache)
    assert refused.value.saw == "no apt-get and no dpkg-deb"
    assert "install it, or set PROTOKUBE_ETCD_BIN" in refused.value.hint
    with pytest.raises(Refused, match="etcdctl is not on this machine"):
        binaries.find("etcdctl", cache)


APT = """#!/bin/sh
echo "$*" >> "$0.log"
case "$*" in
  *update*) touch "$0.updated" ;;
  *download*) test -e "$0.updated" || { echo "no lists" >&2; exit 100; }; : > etcd-server_1.deb ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin"
printf '#!/bin/sh\\necho etcd Version: %s\\n' "$(cat "$0.version")" > "$3/usr/bin/etcd"
chmod 755 "$3/usr/bin/etcd"
"""


def a_debian(path: Path, version: str) -> Path:
    """Programs that do what apt-get and dpkg-deb would, without a network."""
    for name, text in (("apt-get", APT), ("dpkg-deb", DPKG)):
        (path / name).write_text(text)
        (path / name).chmod(0o755)
    for needed in ("touch", "mkdir", "chmod"):
        (path / needed).symlink_to(shutil.which(needed, path="/usr/bin:/bin") or "")
    (path / "dpkg-deb.version").write_text(version)
    return path / "apt-get.log"


def test_on_debian_the_package_is_unpacked_once_and_lists_are_fetched_where_they_are_missing(
    cache: Path, path: Path
) -> None:
    log = a_debian(path, "3.4.23")
    found = binaries.find("etcd", cache)
    assert found == cache / "etcd-server" / "usr" / "bin" / "etcd"
    assert [line.split()[-1] for line in log.read_text().splitlines()] == ["etcd-server", "update", "etcd-server"]
    assert "APT::Sandbox::User=root" in log.read_text()
    assert binaries.find("etcd", cache) == found
    assert len(log.read_text().splitlines()) == 3
    assert [entry.name for entry in cache.iterdir()] == ["etcd-server"]


def test_a_package_that_loses_data_is_refused(cache: Path, path: Path) -> None:
    a_debian(path, "3.5.2")
    with pytest.raises(Refused, match="there is no etcd that can be used") as refused:
        binaries.find("etcd", cache)
    assert "is 3.5.2" in refused.value.saw
    assert "not 3.5.0 to 3.5.2" in refused.value.want


def test_a_package_that_cannot_be_fetched_is_for_later(cache: Path, path: Path) -> None:
    a_debian(path, "3.4.23")
    (path / "apt-get").write_text("#!/bin/sh\necho 'Temporary failure resolving' >&2\nexit 100\n")
    with pytest.raises(TryLater, match="apt-get") as later:
        binaries.find("etcd", cache)
    assert later.value.saw == "Temporary failure resolving"
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("etcd Version: 3.4.23", "3.4.23"),
        ("etcd Version: 3.6.0-rc.1", "3.6.0-rc.1"),
        ("etcdctl version: v3.5.9", "3.5.9"),
    ],
)
def test_a_version_is_read_as_it_is_said(says: str, version: str, tmp_path: Path) -> None:
    assert binaries.version(a_program(tmp_path, "etcd", says)) == version


def test_a_program_without_a_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not say its version") as refused:
        binaries.version(a_program(tmp_path, "etcd", "hello"))
    assert refused.value.saw == "hello"
    with pytest.raises(Refused, match="does not run"):
        binaries.version(tmp_path / "missing")


def test_missing_tools_are_told_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert binaries.missing_tools() == []
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = dict(binaries.missing_tools())
    assert missing.get("nsenter") == "util-linux"  # it lies in /usr/bin, which no longer counts
    assert set(missing) <= {program for program, _ in binaries.TOOLS}
