"""What nodeup writes on machines, judged by the programs that will read it: systemd, containerd, logrotate, a shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from builders.config import completed
from builders.setups import (
    DEBIAN_12,
    DEBIAN_13,
    EVERYTHING,
    ROCKY_9,
    UBUNTU_2404,
    a_setup,
    config_of,
    derived,
    the_file,
)
from host.debian import unpacked
from protokube.images.ctr import Ctr
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import users
from protokube.nodeup.model.runtime import CONFIG
from protokube.nodeup.model.whole import tasks_of
from protokube.nodeup.values import Command, Task, Unit

CRI = "io.containerd.grpc.v1.cri"
ALICE, BOB = (f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{name}0000 {name}@example.com" for name in ("alice", "bob"))


def everything(role: str, facts: Facts) -> tuple[Task, ...]:
    return tasks_of(derived(config_of(EVERYTHING), role).setup, facts)


@pytest.mark.parametrize("facts", [UBUNTU_2404, ROCKY_9], ids=lambda each: each.distribution)
@pytest.mark.parametrize("role", ["Master", "Node"])
def test_systemd_finds_nothing_wrong_with_any_unit(role: str, facts: Facts, tmp_path: Path) -> None:
    """Programs are replaced by one that is here."""
    brought = Unit(name="containerd.service", content="[Service]\nExecStart=/bin/true\n")
    units = {brought.name: brought}
    units |= {each.name: each for each in everything(role, facts) if isinstance(each, Unit) and each.content}
    for unit in units.values():
        text = re.sub(r"(?m)^(Exec[A-Za-z]+=-?)/usr/(local/)?bin/\S+", r"\1/bin/true", unit.content or "")
        (tmp_path / unit.name).write_text(text)
        for name, drop_in in unit.drop_ins.items():
            (tmp_path / f"{unit.name}.d").mkdir(exist_ok=True)
            (tmp_path / f"{unit.name}.d" / name).write_text(drop_in)

    found = run("systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in units))

    assert len(units) >= 4
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("suite", ["", "trixie"], ids=["bookworm", "trixie"])
def test_containerd_of_debian_understands_its_configuration_as_it_is_meant(suite: str, tmp_path: Path) -> None:
    tasks = everything("Master", DEBIAN_13)
    config = tmp_path / "config.toml"
    config.write_bytes(the_file(tasks, CONFIG).content)

    dumped = run(program("containerd", suite), "--config", str(config), "config", "dump")

    assert dumped.returncode == 0, dumped.stderr
    seen = tomllib.loads(dumped.stdout)
    cri = seen["plugins"][CRI]
    assert (seen["root"], seen["debug"]["level"]) == ("/data/containerd", "debug")
    assert cri["sandbox_image"] == "registry.example.com/pause:3.10"
    assert cri["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
    assert cri["containerd"]["runtimes"]["kata"]["runtime_type"] == "io.containerd.kata.v2"
    assert cri["registry"]["config_path"] == "/etc/containerd/certs.d"
    assert (cri["cni"]["bin_dir"], cri["max_concurrent_downloads"]) == ("/opt/cni/bin", 10)
    if suite:
        nri = seen["plugins"]["io.containerd.nri.v1.nri"]
        assert (nri["disable"], nri["plugin_request_timeout"]) == (False, "5s")


@pytest.mark.parametrize("suite", ["", "trixie"], ids=["bookworm", "trixie"])
def test_containerd_of_debian_serves_pods_with_its_configuration(suite: str, tmp_path: Path) -> None:
    paths = {"address": f"{tmp_path}/c.sock", "root": f"{tmp_path}/root", "state": f"{tmp_path}/state"}
    setup = a_setup(containerd=paths, kubelet={"cgroupDriver": "cgroupfs"})
    config = tmp_path / "config.toml"
    config.write_bytes(the_file(tasks_of(setup, replace(DEBIAN_12, container=True)), CONFIG).content)

    with started(program("containerd", suite), "--config", str(config), log=tmp_path / "log"):
        ctr = Ctr((program("ctr", suite, "containerd"),), address=paths["address"])
        ctr.await_start(60)
        plugins = [each.split() for each in ctr("plugins", "list", seconds=60).splitlines()]

    assert [each[-1] for each in plugins if each[:2] == ["io.containerd.grpc.v1", "cri"]] == ["ok"]


def test_logrotate_reads_our_rules(tmp_path: Path) -> None:
    rules = tmp_path / "protokube"
    rules.write_bytes(the_file(tasks_of(a_setup(), DEBIAN_12), "/etc/logrotate.d/protokube").content)
    rules.chmod(0o644)
    libraries = ":".join(str(each) for each in (unpacked("libpopt0") / "lib").rglob("*-linux-gnu"))
    libraries += "".join(f":{each}" for each in (unpacked("libpopt0") / "usr").rglob("*-linux-gnu"))
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}

    read = run(
        str(unpacked("logrotate") / "usr/sbin/logrotate"), "--debug", f"--state={tmp_path}/state", str(rules),
        environment=environment,
    )  # fmt: skip

    assert read.returncode == 0, read.stderr
    assert "error" not in read.stderr
    assert re.search(r"Handling 8 logs|/var/log/etcd\.log", read.stderr)


def test_keys_of_operators_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    """Where sshd reads one file only: the user's own keys stay, whatever their last line ends with."""
    place = tmp_path / "authorized_keys"
    place.write_text(BOB)

    before, first, after, second = (ssh_keys(place, kind, ALICE, BOB) for kind in ("check", "run", "check", "run"))

    assert (before, first, after, second) == (1, 0, 0, 0)
    assert place.read_text() == f"{BOB}\n{ALICE}\n"


def test_keys_of_operators_make_the_file_that_is_missing(tmp_path: Path) -> None:
    place = tmp_path / "authorized_keys"

    assert [ssh_keys(place, kind, ALICE) for kind in ("check", "run", "check")] == [1, 0, 0]
    assert place.read_text() == f"{ALICE}\n"
    assert place.stat().st_mode & 0o777 == 0o600


def ssh_keys(place: Path, kind: str, *keys: str) -> int:
    """The command of a machine, with another file than root's own."""
    setup = derived(completed(cloud="metal", sshPublicKeys=list(keys))).setup
    (command,) = (each for each in users.user_tasks(setup, ROCKY_9) if isinstance(each, Command))
    words = command.check if kind == "check" else command.run
    return run(*(word.replace(users.THEIRS, str(place)) for word in words)).returncode


def program(name: str, suite: str, package: str = "") -> str:
    return str(unpacked(package or name, suite) / "usr/bin" / name)


def run(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    if shutil.which(words[0]) is None:
        pytest.fail(f"{words[0]} is not on this machine")
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)


@contextmanager
def started(*words: str, log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)
