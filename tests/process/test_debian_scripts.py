"""The scripts that dpkg runs around the files of our package, and its unit."""

from __future__ import annotations

import configparser
import os
import subprocess
from pathlib import Path

import pytest

PARTS = Path(__file__).parents[2] / "scripts" / "debian"
PLACES = ("/usr/lib/protokube", "/var/lib/protokube", "/run/systemd/system")


class Machine:
    """A folder that stands for `/` in the scripts, and a systemctl that only tells how it was called."""

    def __init__(self, root: Path) -> None:
        self.root, self.called = root, root / "called"
        (root / "bin").mkdir()
        for name in ("systemctl", "python3"):
            (root / "bin" / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {self.called}\n')
            (root / "bin" / name).chmod(0o755)

    def path(self, place: str) -> Path:
        found = self.root / place.removeprefix("/")
        found.mkdir(parents=True, exist_ok=True)
        return found

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        text = (PARTS / script).read_text()
        for place in PLACES:
            text = text.replace(place, f"{self.root}{place}")
        env = {**os.environ, "PATH": f"{self.root}/bin:/usr/bin:/bin"}
        return subprocess.run(
            ["sh", "-c", text, script, *arguments], capture_output=True, text=True, env=env, timeout=60, check=False
        )

    def calls(self) -> list[str]:
        return self.called.read_text().splitlines() if self.called.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("action", ["remove", "upgrade"])
def test_a_package_whose_files_are_gone_can_be_removed_and_upgraded(machine: Machine, action: str) -> None:
    ran = machine.run("prerm", action, "0.2.0")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_bytecode_goes_and_nothing_else(machine: Machine) -> None:
    home = machine.path("/usr/lib/protokube/protokube/cli")
    (home / "__pycache__" / "deeper" / "__pycache__").mkdir(parents=True)
    (home / "main.py").write_text("")

    ran = machine.run("prerm", "upgrade", "0.2.0")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert [each.name for each in home.iterdir()] == ["main.py"]


def test_the_agent_is_stopped_by_a_removal_and_goes_on_through_an_upgrade(machine: Machine) -> None:
    machine.path("/run/systemd/system")

    machine.run("prerm", "upgrade", "0.2.0")
    assert machine.calls() == []
    machine.run("postinst", "configure", "0.1.0")
    assert machine.calls() == ["systemctl daemon-reload", "systemctl try-restart protokube-agent.service"]
    machine.run("prerm", "remove")
    assert machine.calls()[2:] == ["systemctl stop protokube-agent.service"]


def test_a_first_installation_starts_nothing(machine: Machine) -> None:
    machine.path("/run/systemd/system")

    machine.run("postinst", "configure", "")

    assert machine.calls() == ["systemctl daemon-reload"]


@pytest.mark.parametrize("action", ["remove", "purge"])
def test_local_clusters_stay_and_are_told(machine: Machine, action: str) -> None:
    cluster = machine.path("/var/lib/protokube/local/laptop")
    (cluster / "protokube-local-cloud").write_text("")

    told = machine.run("prerm", "remove").stderr
    ran = machine.run("postrm", action)

    assert told == (
        "protokube: the local cluster laptop stays; once protokube is installed again, `protokube down` removes it\n"
    )
    assert ran.returncode == 0
    assert (cluster / "protokube-local-cloud").exists()


def test_the_python_that_compiles_is_the_one_that_runs(machine: Machine) -> None:
    home = machine.path("/usr/lib/protokube")
    (home / "module.py").write_text("")

    machine.run("postinst", "configure", "")

    assert machine.calls() == [], "a python3 that comes first on the PATH may be another one"
    assert (PARTS / "launcher").read_text().startswith("#!/usr/bin/python3 ")


def test_what_works_on_a_disk_outlives_the_agent(machine: Machine) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string((PARTS / "protokube-agent.service").read_text())

    assert unit["Service"]["KillMode"] == "process", "other modes kill a mkfs half-way at each restart"
