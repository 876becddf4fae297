"""The folders of a host, before anything is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.local.host.rootfs import hidden, lay_out


def test_only_what_a_host_has_of_its_own_hides_programs(tmp_path: Path) -> None:
    (tmp_path / "tools" / "deep").mkdir(parents=True)
    assert tmp_path.parts[1] in ("tmp", "var"), "these tests run in a folder that every host has of its own"
    tools, deep = str(tmp_path / "tools"), str(tmp_path / "tools" / "deep")
    paths = [deep, "/usr/bin", tools, "/bin", "", "relative/a/b", "/tmp", "/var", str(tmp_path / "none")]
    assert hidden(paths, Path("/state")) == [tools]


def test_neighbours_with_a_common_beginning_are_both_shown(tmp_path: Path) -> None:
    for name in ("bin", "bin2"):
        (tmp_path / name).mkdir()
    both = [str(tmp_path / "bin"), str(tmp_path / "bin2")]
    assert hidden(both, Path("/state")) == both


def test_programs_below_the_folder_of_the_cloud_are_hidden_wherever_it_lies() -> None:
    assert hidden(["/usr/bin", "/usr/sbin", "/usr"], Path("/usr")) == ["/usr/bin", "/usr/sbin"]


def test_a_new_host_gets_its_files(tmp_path: Path) -> None:
    lay_out(tmp_path, "master-1", "10.77.0.11")
    assert (tmp_path / "etc" / "hostname").read_text() == "master-1\n"
    assert "10.77.0.11 master-1\n" in (tmp_path / "etc" / "hosts").read_text()
    assert (tmp_path / "etc" / "resolv.conf").read_text().startswith("nameserver 10.77.0.1\n")
    assert len((tmp_path / "etc" / "machine-id").read_text()) == 33
    assert (tmp_path / "run" / "protokube" / "cloud.sock").readlink() == Path("outside/cloud.sock")


@pytest.mark.parametrize(("file", "kept"), [("etc/hosts", True), ("var/lib/x", True), ("run/x", False)])
def test_a_reboot_keeps_everything_but_run(tmp_path: Path, file: str, kept: bool) -> None:
    lay_out(tmp_path, "master-1", "10.77.0.11")
    (tmp_path / file).write_text("mine")
    lay_out(tmp_path, "master-1", "10.77.0.12")
    assert (tmp_path / file).exists() is kept
    if kept:
        assert (tmp_path / file).read_text() == "mine"


def test_a_reboot_renews_what_the_boot_decides(tmp_path: Path) -> None:
    lay_out(tmp_path, "master-1", "10.77.0.11")
    identity = (tmp_path / "etc" / "machine-id").read_text()
    (tmp_path / "etc" / "resolv.conf").write_text("nameserver 192.0.2.1\n")
    lay_out(tmp_path, "master-1", "10.77.0.11")
    assert "10.77.0.1" in (tmp_path / "etc" / "resolv.conf").read_text()
    assert (tmp_path / "etc" / "machine-id").read_text() == identity
