"""The whole of nodeup on one machine: the single file, a setup, a bundle and a repository of packages, no network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.config import completed
from builders.nodeup_machine import tree_of
from builders.setups import derived
from clusters.machines.chroot import Chroot
from clusters.machines.debs import Deb, configure, publish
from clusters.machines.machine import SystemdMachine
from clusters.machines.tasks import descendants
from clusters.machines.waiting import wait_for
from protokube.launch.setup import to_tree
from protokube.launch.setups.values import AssetSetup, FileSetup, MachineSetup
from protokube.nodeup.assets.bundle import write_bundle
from protokube.nodeup.model import kernel
from protokube.nodeup.values import Asset

PYZ, SETUP, BUNDLE = "/root/protokube.pyz", "/etc/protokube/setup.json", "/root/rack.bundle"
RUN = ("python3", PYZ, "nodeup", "--bundle", BUNDLE)
INVENTORY = "/etc/protokube/inventory.yaml"
COMPARED = ("etc", "opt", "usr", "var/lib/protokube")
WATCHED = (*COMPARED, "var/cache/apt", "var/cache/protokube", "var/lib/apt", "var/lib/dpkg")
OWN = (".pyc", "lock", "machine-id")
"""What is different on each machine, or made by reading."""
NO_SCRIPT = "#!/bin/sh\n"
SERVES = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
TIMER = "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n"
FILES = {
    "conntrack": {"usr/sbin/conntrack": ""},
    "containerd": {"lib/systemd/system/containerd.service": SERVES, "etc/containerd/config.toml": "packaged = true\n"},
    "containernetworking-plugins": {"usr/lib/cni/loopback": ""},
    "ethtool": {"usr/sbin/ethtool": ""},
    "iptables": {"usr/sbin/iptables": ""},
    "logrotate": {
        "lib/systemd/system/logrotate.timer": TIMER,
        "lib/systemd/system/logrotate.service": "[Service]\nType=oneshot\nExecStart=/bin/true\n",
    },
    "socat": {"usr/bin/socat": ""},
    "systemd-timesyncd": {"lib/systemd/system/systemd-timesyncd.service": SERVES},
}
VERSIONS = {"containerd": "1.7.24~ds1-1", "containernetworking-plugins": "1.1.1+ds1-1"}
CONFFILES = {"containerd": ("/etc/containerd/config.toml",)}
AGENT = """#!/usr/bin/python3
import os, signal, socket
address = os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1)
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", address)
signal.pause()
"""
"""Says that it is ready, as the agent does."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    publish(folder, [
        Deb(
            name=name, version=VERSIONS.get(name, "1.0"), files=files, conffiles=CONFFILES.get(name, ()),
            postinst=NO_SCRIPT,
        )
        for name, files in FILES.items()
    ])  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small files in place of Kubernetes' programs."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("kubectl", "kubelet"):
        (folder / name).write_text(f"#!/bin/sh\n# {name}\nexec sleep infinity\n")
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def setup(programs: dict[str, Path]) -> MachineSetup:
    found = tuple(
        AssetSetup(name=name, sha256=digest(path), urls=(f"https://assets.invalid/{name}",), size=path.stat().st_size)
        for name, path in sorted(programs.items())
    )
    config = completed(cloud="metal", nodes=1, kubelet={"failCgroupV1": False})
    return derived(config, "Master", assets=found, node_name="master-1").setup


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def prepare(files: Path, setup: MachineSetup, repository: Path, programs: dict[str, Path]) -> None:
    """Give a root what nodeup needs."""
    configure(files)
    shutil.copytree(repository, files / "repository")
    agent = files / "usr/local/bin/protokube"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    assets = [
        (Asset(name=each.name, sha256=each.sha256, urls=each.urls, size=each.size), programs[each.name])
        for each in setup.assets
    ]
    write_bundle(files / BUNDLE[1:], assets, "a test", lambda _: None)
    tell(files, setup)


def tell(files: Path, setup: MachineSetup) -> None:
    path = files / SETUP[1:]
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps(to_tree(setup)))


class Provisioned:
    """A machine with what nodeup needs."""

    def __init__(self, setup: MachineSetup, repository: Path, programs: dict[str, Path], pyz: Path) -> None:
        self.machine = SystemdMachine("bare", disk="1G", boot=False)
        files = self.machine.files
        prepare(files, setup, repository, programs)
        (files / PYZ[1:]).write_bytes(pyz.read_bytes())
        try:
            self.machine.boot()
        except BaseException:
            self.machine.close()
            raise

    def tell(self, setup: MachineSetup) -> None:
        tell(self.machine.files, setup)

    def nodeup(self, *options: str) -> tuple[int, dict[str, Any]]:
        """Its exit code, and what it says as data."""
        ran = self.machine.ran(*RUN, *options, "-o", "json")
        assert ran.stdout.startswith("{"), f"{ran.returncode}: {ran.stdout}{ran.stderr}"
        return ran.returncode, json.loads(ran.stdout)

    def tree(self, parts: tuple[str, ...], *, times: bool = False) -> dict[str, tuple[object, ...]]:
        """What was written to it, without what its base has."""
        written = self.machine.keeper.files(self.machine.folder / "upper")
        found: dict[str, tuple[object, ...]] = {}
        for part in parts:
            below = tree_of(written / part, times=times)
            found |= {f"{part}/{name}": value for name, value in below.items() if not name.endswith(OWN)}
        return found

    def started(self, unit: str) -> str:
        return self.machine.show(unit, "ActiveEnterTimestampMonotonic")

    def grant(self, setup: MachineSetup) -> None:
        """Set the kernel parameters that only the host of a container can set."""
        for name, value in (kernel.NETWORK | dict(setup.sysctls)).items():
            self.machine.keeper.run("sh", "-ec", f"echo {value} > /proc/sys/{name.replace('.', '/')}")

    def killed_after(self, changes: int) -> bool:
        """Run it, and kill it as soon as it has told so many changes; whether it was still at work."""
        silent, pipe = subprocess.DEVNULL, subprocess.PIPE
        process = subprocess.Popen(self.machine.enter(*RUN), stdin=silent, stdout=pipe, stderr=silent, text=True)
        assert process.stdout
        for line in process.stdout:
            changes -= line.startswith("changed")
            if changes <= 0:
                break
        killed = False
        for pid in descendants(process.pid):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[:2] == [b"python3", PYZ.encode()]:
                os.kill(pid, 9)
                killed = True
        process.wait(60)
        process.stdout.close()
        return killed


def results(report: dict[str, Any], *results: str) -> dict[str, str]:
    """Keys of the tasks that ended so, with the reasons."""
    return {each["key"]: each["why"] for each in report["tasks"] if each["result"] in results}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def bare(setup: MachineSetup, repository: Path, programs: dict[str, Path], pyz: Path) -> Iterator[Provisioned]:
    found = Provisioned(setup, repository, programs, pyz)
    yield found
    found.machine.close()


@pytest.fixture(scope="module")
def master(setup: MachineSetup, repository: Path, programs: dict[str, Path], pyz: Path) -> Iterator[Provisioned]:
    """One on which nodeup has run, as for all tests here that leave it so."""
    found = Provisioned(setup, repository, programs, pyz)
    try:
        found.grant(setup)
        code, report = found.nodeup()
        assert (code, results(report, "failed", "blocked", "stopped")) == (0, {})
        yield found
    finally:
        found.machine.close()


def test_a_plan_of_a_bare_machine_writes_nothing_and_names_what_it_lacks(bare: Provisioned) -> None:
    before = bare.tree(WATCHED, times=True)

    ran = bare.machine.ran(*RUN, "--target", "plan")

    assert ran.returncode == 4
    assert "apt-get update" in ran.stderr
    assert bare.tree(WATCHED, times=True) == before

    bare.machine.run("apt-get", "update")
    before = bare.tree(WATCHED, times=True)

    assert bare.machine.ran(*RUN, "--target", "plan").returncode == 1
    assert bare.tree(WATCHED, times=True) == before


def test_what_only_the_host_of_a_container_can_set_is_refused_and_all_else_is_done(bare: Provisioned) -> None:
    code, report = bare.nodeup()

    ((key, why),) = results(report, "failed", "blocked", "stopped").items()
    assert (code, key) == (4, "sysctl 99-protokube.conf")
    command = re.search(r"there: `(.*)`", why)
    assert command, why

    bare.machine.keeper.run("sh", "-ec", command[1])  # in the network of the machine, from outside

    code, report = bare.nodeup()
    assert (code, results(report, "changed", "failed", "blocked", "stopped")) == (0, {})


def test_a_bare_machine_becomes_a_master(master: Provisioned, setup: MachineSetup) -> None:
    machine, files = master.machine, master.machine.files
    for name in ("kubectl", "kubelet"):
        program = files / "usr/local/bin" / name
        assert program.read_text().startswith(f"#!/bin/sh\n# {name}")
        assert mode(program) == 0o755
    for path in ("/etc/protokube", "/var/lib/protokube", setup.pki):
        assert mode(files / path[1:]) == 0o700
    assert mode(files / "etc/protokube/agent.json") == 0o600
    assert "packaged" not in (files / "etc/containerd/config.toml").read_text()
    assert machine.run("hostname") == "master-1"
    assert machine.run("apt-mark", "showhold").split() == ["containerd", "containernetworking-plugins"]
    for unit in ("containerd.service", "protokube-agent.service", "logrotate.timer"):
        assert (machine.show(unit, "UnitFileState"), machine.show(unit, "ActiveState")) == ("enabled", "active")
    assert machine.show("kubelet.service", "LoadState") == "loaded"
    assert machine.show("kubelet.service", "UnitFileState") == "static"
    assert machine.show("kubelet.service", "ActiveState") == "inactive"


def test_a_second_run_and_a_plan_change_nothing(master: Provisioned) -> None:
    before = master.tree(WATCHED, times=True)

    code, report = master.nodeup()

    assert (code, results(report, "changed", "failed", "blocked", "stopped")) == (0, {})
    assert master.machine.ran(*RUN, "--target", "plan").returncode == 0
    assert master.tree(WATCHED, times=True) == before


def test_one_changed_setting_changes_its_file_and_restarts_its_unit(master: Provisioned, setup: MachineSetup) -> None:
    before = master.tree(COMPARED)
    started = {unit: master.started(unit) for unit in ("containerd.service", "protokube-agent.service")}
    master.tell(replace(setup, runtime=replace(setup.runtime, log_level="debug")))

    code, report = master.nodeup()

    assert code == 0
    assert set(results(report, "changed")) == {"file /etc/containerd/config.toml", "unit containerd.service"}
    after = master.tree(COMPARED)
    assert {path for path in before | after if before.get(path) != after.get(path)} == {
        "etc/containerd/config.toml", SETUP[1:],
    }  # fmt: skip
    assert master.started("containerd.service") != started["containerd.service"]
    assert master.started("protokube-agent.service") == started["protokube-agent.service"]
    master.tell(setup)
    assert master.nodeup()[0] == 0
    assert master.tree(COMPARED) == before


def test_everything_is_still_true_after_a_reboot(master: Provisioned) -> None:
    before = master.tree(COMPARED)
    master.machine.reboot()

    code, report = master.nodeup()

    assert (code, results(report, "changed", "failed", "blocked", "stopped")) == (0, {})
    assert master.tree(COMPARED) == before
    assert master.machine.show("kubelet.service", "ActiveState") == "inactive"


def test_a_machine_whose_runs_were_killed_ends_as_one_that_was_left_alone(
    master: Provisioned, bare: Provisioned, setup: MachineSetup
) -> None:
    bare.grant(setup)
    assert bare.killed_after(1)
    for changes in (3, 2, 8, 5, 4):
        bare.killed_after(changes)

    code, report = bare.nodeup()

    assert (code, results(report, "failed", "blocked", "stopped")) == (0, {})
    assert bare.tree(COMPARED) == master.tree(COMPARED)
    listed = ("dpkg-query", "--show", "--showformat", "${Package} ${Version} ${db:Status-Abbrev}\n")
    assert bare.machine.run(*listed) == master.machine.run(*listed)
    code, report = bare.nodeup()
    assert (code, results(report, "changed")) == (0, {})


def test_the_agent_is_started_with_what_nodeup_wrote_and_is_told_of_as_running(
    bare: Provisioned, setup: MachineSetup, pyz: Path
) -> None:
    """Its disk is missing: so it runs, and waits for it before it starts the kubelet."""
    agent = bare.machine.files / "usr/local/bin/protokube"
    agent.write_bytes(pyz.read_bytes())
    bare.tell(with_inventory(setup))
    bare.grant(setup)

    code, report = bare.nodeup()

    assert (code, results(report, "failed", "blocked", "stopped")) == (0, {})
    assert bare.machine.show("protokube-agent.service", "ActiveState") == "active"
    wait_for(lambda: "main/a: waits" in bare.machine.show("protokube-agent.service", "StatusText"), "the first round")
    code, report = bare.nodeup()
    assert (code, results(report, "changed")) == (0, {})


def with_inventory(setup: MachineSetup) -> MachineSetup:
    assert setup.agent
    infrastructure = {
        "kind": "file", "inventory": INVENTORY, "state": "/var/lib/protokube/disks", "machine": setup.node_name,
    }  # fmt: skip
    text = (
        f"machines: [{{id: {setup.node_name}, address: 127.0.0.1}}]\n"
        f"disks: [{{machine: {setup.node_name}, device: /dev/disk/by-id/absent, serial: S1, size: 21474836480,"
        " etcdCluster: main, member: a, blank: true}]\n"
    )
    agent = {**setup.agent, "store": "file:///var/lib/protokube/state", "infrastructure": infrastructure}
    inventory = FileSetup(path=INVENTORY, content=base64.b64encode(text.encode()).decode())
    return replace(setup, agent=agent, documents=(inventory,))


def test_the_root_of_an_image_becomes_one_too_and_nothing_runs_in_it(
    setup: MachineSetup, repository: Path, programs: dict[str, Path]
) -> None:
    chroot = Chroot()
    try:
        prepare(chroot.files, setup, repository, programs)
        root = str(chroot.path)
        here = (sys.executable, "-m", "protokube", "nodeup", "--root", root, "--bundle", f"{root}{BUNDLE}")

        def nodeup() -> dict[str, Any]:
            ran = subprocess.run(chroot.keeper.enter(*here, "-o", "json"), capture_output=True, text=True)
            report: dict[str, Any] = json.loads(ran.stdout)
            assert (ran.returncode, results(report, "failed", "blocked", "stopped")) == (0, {})
            return report

        nodeup()
        wants = chroot.files / "etc/systemd/system/multi-user.target.wants"
        assert {each.name for each in wants.iterdir()} >= {"containerd.service", "protokube-agent.service"}
        assert (chroot.files / "usr/local/bin/kubelet").is_file()
        assert results(nodeup(), "changed") == {}
    finally:
        chroot.close()
