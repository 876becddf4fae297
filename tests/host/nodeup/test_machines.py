"""The machines of tests themselves: they share nothing, and nothing of them stays, however the test ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clusters.machines import cgroups
from clusters.machines.base import debian_root
from clusters.machines.machine import SystemdMachine
from clusters.machines.network import Network
from clusters.machines.tasks import descendants
from clusters.machines.waiting import wait_for

TESTS = Path(__file__).resolve().parents[2]
KILLED = """
import sys
sys.path[:0] = [{tests!r}]
from clusters.machines.machine import SystemdMachine
machine = SystemdMachine("killed")
print(machine.keeper.pid, machine.init, machine.folder, machine.id, flush=True)
sys.stdin.read()
"""


def left(identity: str, folder: str, *pids: int) -> list[str]:
    """What is still there of a machine."""
    found = [str(each) for tree in cgroups.trees() for each in tree.glob(f"*{identity}*")]
    found += [folder] if Path(folder).exists() else []
    found += [f"process {pid}" for pid in pids if Path(f"/proc/{pid}").exists()]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if folder in line]
    loops = subprocess.run(["losetup", "--list", "--noheadings", "--output=BACK-FILE"], capture_output=True, text=True)
    return found + [line for line in loops.stdout.splitlines() if folder in line]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_stays_of_a_machine_whose_test_was_killed(how: signal.Signals) -> None:
    debian_root()
    command = [sys.executable, "-c", KILLED.format(tests=str(TESTS))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        keeper, init, folder, identity = process.stdout.readline().split()
        assert left(identity, folder, int(keeper), int(init))
        process.send_signal(how)
        process.wait()

    wait_for(lambda: not left(identity, folder, int(keeper), int(init)), "the end of all of it")


def test_machines_are_apart_and_talk_over_their_network_and_keep_what_they_wrote() -> None:
    network = Network()
    machines: list[SystemdMachine] = []
    try:
        for index, name in enumerate(("left", "right")):
            machines.append(SystemdMachine(name))
            network.connect(machines[-1].keeper, f"10.91.0.{index + 11}/24")
        one, other = machines
        ids = {each.run("cat", "/etc/machine-id") for each in machines}
        assert len(ids) == 2
        for each in machines:  # in every tree of version 1
            each.run("sh", "-ec", "for tree in /sys/fs/cgroup/*/; do mkdir -p $tree/kubepods; done")
        one.run("sh", "-ec", "for tree in /sys/fs/cgroup/*/; do rmdir $tree/kubepods; done")
        other.run("sh", "-ec", "for tree in /sys/fs/cgroup/*/; do test -d $tree/kubepods; done")
        for name in ("kubelet", "containerd"):
            assert one.run("stat", "-f", "-c", "%T", f"/var/lib/{name}") == "ext2/ext3"
        assert one.run("hostname") == "left"
        one.serve_ssh()
        banner = "import socket; print(socket.create_connection(('10.91.0.11', 22), 10).recv(7).decode())"
        assert other.run("python3", "-c", banner) == "SSH-2.0"
        assert network.keeper.run(sys.executable, "-c", banner).strip() == "SSH-2.0"

        one.run("sh", "-c", "echo kept > /var/lib/kubelet/file; echo kept > /root/file; sync")
        one.reboot()
        one.power_off()
        one.boot()
        one.pull_the_plug()
        one.boot()
        assert one.run("cat", "/var/lib/kubelet/file", "/root/file").split() == ["kept", "kept"]
        assert one.run("cat", "/etc/machine-id") in ids
        assert other.run("python3", "-c", banner) == "SSH-2.0"

        processes = descendants(one.keeper.pid)
        one.close()
        machines.remove(one)
        assert left(one.id, str(one.folder), *processes) == []
        assert os.path.ismount("/proc")
    finally:
        for each in machines:
            each.close()
        network.close()
