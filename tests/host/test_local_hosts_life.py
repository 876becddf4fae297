"""The life of a host: it starts or leaves nothing, outlives its maker, freezes, and ends whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clusters.hosts import IDLE, Cloud, Host, a_cloud, eventually, is_mounted_from
from protokube.errors import Refused, TryLater
from protokube.local.host import hosts, network

COUNT = "while :; do echo >> /run/count; sleep 0.01; done"
"""Shows from outside whether time passes inside."""


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with a_cloud() as made:
        yield made


@pytest.fixture(scope="module")
def quiet() -> Iterator[Host]:
    """A host that is only looked at."""
    with a_cloud() as made:
        yield made.start("quiet", 11, environment={"COLOUR": "blue"}, units={"idle.service": IDLE})


def counted(host: Host) -> int:
    return eventually(lambda: host.outside("/run/count").stat().st_size)


# Its life


def test_killing_it_leaves_no_process_no_mount_and_no_namespace(cloud: Cloud) -> None:
    host = cloud.start("brief", 11, units={"busy.service": ["sh", "-c", "setsid sleep 1000 & sleep 1000"]})
    eventually(lambda: len(hosts.processes(host.pid)) >= 4)
    assert is_mounted_from(host.spec.folder)
    own = {str(Path(f"/proc/{host.pid}/ns/{kind}").readlink()) for kind in ("mnt", "net", "pid", "uts")}
    inside = hosts.processes(host.pid)
    members = who_is_in(own)
    assert {pid for pid, _ in members} == set(inside), "nobody else is in one of them"

    hosts.kill(host.pid)

    assert not [pid for pid in inside if Path(f"/proc/{pid}/exe").exists()]
    assert hosts.processes(host.pid) == ()
    assert not is_mounted_from(host.spec.folder)
    eventually(lambda: members.isdisjoint(who_is_in(own)))  # once the machine's first process has noticed
    eventually(lambda: network.port("brief") not in switch_ports(cloud))


def who_is_in(namespaces: set[str]) -> set[tuple[int, int]]:
    """By pid and start: the kernel gives the number of a namespace that is gone to the next one, of another test."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if namespaces & {str((process / "ns" / kind).readlink()) for kind in ("mnt", "net", "pid", "uts")}:
                found.add((int(process.name), hosts.started_at(int(process.name))))
    return found


def switch_ports(cloud: Cloud) -> str:
    return subprocess.run(["ip", "-n", cloud.switch, "link"], capture_output=True, text=True, check=True).stdout


def test_a_dead_host_is_not_alive_and_killing_it_again_is_fine(cloud: Cloud) -> None:
    host = cloud.start("mortal", 11)
    started = hosts.started_at(host.pid)
    assert hosts.running(host.spec.folder) == host.pid
    hosts.kill(host.pid)
    assert not hosts.alive(host.pid, started)
    assert hosts.running(host.spec.folder) is None
    hosts.kill(host.pid)


def test_a_pid_that_is_used_again_is_not_the_host(cloud: Cloud) -> None:
    host = cloud.start("first", 11)
    assert not hosts.alive(host.pid, hosts.started_at(host.pid) - 1)
    assert not hosts.alive(host.pid, hosts.started_at(os.getpid()))


def test_a_process_that_ended_and_that_nobody_asked_about_is_not_alive() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    started = hosts.started_at(child.pid)
    assert hosts.alive(child.pid, started)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not hosts.alive(child.pid, started)
    child.wait()
    assert not hosts.alive(child.pid, started)


def test_nothing_inside_can_end_a_host(cloud: Cloud) -> None:
    host = cloud.start("tough", 11)
    host.run("sh", "-c", "kill -9 1; kill -STOP 1; kill -HUP 1; kill -USR1 1")
    time.sleep(0.1)
    assert hosts.alive(host.pid, hosts.started_at(host.pid))
    assert "1" in host.run("ls", "/proc").stdout.split()


def test_the_power_button_is_sigterm(cloud: Cloud) -> None:
    last_words = "trap 'echo bye > /var/farewell; exit' TERM; echo > /run/up; while :; do sleep 0.01; done"
    host = cloud.start("polite", 11, units={"polite.service": ["sh", "-c", last_words]})
    eventually(host.outside("/run/up").exists)
    started = hosts.started_at(host.pid)
    os.kill(host.pid, signal.SIGTERM)
    eventually(lambda: not hosts.alive(host.pid, started))
    assert host.outside("/var/farewell").read_text() == "bye\n"


def test_what_a_unit_leaves_behind_may_end_by_itself_too(cloud: Cloud) -> None:
    """As etcd in a container, whose kubelet has ended."""
    last_words = "trap 'echo bye > /var/farewell; exit' TERM; echo > /run/up; while :; do sleep 0.01; done"
    unit = ["sh", "-c", 'setsid sh -c "$1" & exec sleep 1000', "sh", last_words]
    host = cloud.start("orderly", 11, units={"kubelet-like.service": unit})
    eventually(host.outside("/run/up").exists)
    started = hosts.started_at(host.pid)
    os.kill(host.pid, signal.SIGTERM)
    eventually(lambda: not hosts.alive(host.pid, started))
    assert host.outside("/var/farewell").read_text() == "bye\n"


def test_a_host_outlives_whoever_started_it(cloud: Cloud) -> None:
    spec = cloud.spec("orphan", 11, units={"count.service": ["sh", "-c", COUNT]})
    code = f"""
from pathlib import Path, PosixPath
from protokube.local.host import hosts
from protokube.local.host.hosts import HostSpec
import os
hosts.start({spec!r})
os.kill(os.getpid(), 9)
"""
    starter = subprocess.run([sys.executable, "-c", code], start_new_session=True, check=False)
    assert starter.returncode == -9
    pid = hosts.running(spec.folder)
    assert pid is not None
    host = Host(spec, pid)
    cloud.hosts.append(host)
    before = counted(host)
    eventually(lambda: counted(host) > before)
    assert host.run("hostname").stdout == "orphan\n"


def test_a_host_that_is_started_again_keeps_its_files_but_not_its_run(cloud: Cloud) -> None:
    agent = cloud.root / "hosts" / "twice" / "etc" / "protokube" / "agent.json"
    agent.parent.mkdir(parents=True)
    agent.write_text("{}")
    first = cloud.start("twice", 11)
    assert first.run("cat", "/etc/protokube/agent.json").stdout == "{}"
    first.run("sh", "-c", "echo kept > /var/kept; echo mine >> /etc/hosts; echo lost > /run/lost")
    identity = first.outside("/etc/machine-id").read_text()
    hosts.kill(first.pid)
    second = cloud.start("twice", 12)
    assert second.run("cat", "/var/kept").stdout == "kept\n"
    assert second.run("tail", "-n1", "/etc/hosts").stdout == "mine\n"
    assert second.outside("/etc/machine-id").read_text() == identity
    assert not second.outside("/run/lost").exists()


# Starting that fails


def leaves_nothing(cloud: Cloud, name: str) -> None:
    """No cable, no first process, and no mount table of any process that shows the host's folder."""
    folder = cloud.root / "hosts" / name
    assert hosts.running(folder) is None
    eventually(lambda: network.port(name) not in switch_ports(cloud))
    eventually(lambda: not is_mounted_from(folder))


def test_a_host_without_a_switch_is_not_started(cloud: Cloud) -> None:
    with pytest.raises(Refused, match="host lost did not start: there is no network namespace"):
        cloud.start("lost", 11, switch="pk-nowhere")
    leaves_nothing(cloud, "lost")


def test_a_host_without_a_store_is_not_started(cloud: Cloud) -> None:
    with pytest.raises(Refused, match="did not start") as refused:
        cloud.start("poor", 11, store=cloud.root / "nothing")
    assert f"mount {cloud.root}/nothing" in refused.value.saw
    leaves_nothing(cloud, "poor")


def test_a_host_with_an_address_that_is_none_is_not_started(cloud: Cloud) -> None:
    with pytest.raises((Refused, TryLater)) as refused:
        cloud.start("nowhere", 11, address="10.77.0.311")
    assert "did not start" in refused.value.message
    leaves_nothing(cloud, "nowhere")


def test_a_first_process_that_breaks_is_told_with_its_last_words(cloud: Cloud) -> None:
    with pytest.raises(TryLater, match="host broken did not start") as later:
        cloud.start("broken", 11, units={"odd.service": [3]})
    assert "TypeError" in later.value.saw
    leaves_nothing(cloud, "broken")


@pytest.mark.parametrize("name", ["", "Upper", "-dash", "a/b", "..", "x" * 64, "two words"])
def test_a_name_that_no_host_can_have_is_refused(cloud: Cloud, name: str) -> None:
    with pytest.raises(Refused, match="cannot be the name of a host"):
        hosts.start(cloud.spec(name, 11))


def test_a_host_that_runs_is_not_started_again(cloud: Cloud) -> None:
    host = cloud.start("only", 11)
    with pytest.raises(Refused, match="host only runs already") as refused:
        cloud.start("only", 12)
    assert str(host.pid) in refused.value.saw
    assert host.run("hostname").stdout == "only\n"


# Stopping its clock


def test_a_frozen_host_does_nothing_until_it_is_thawed(cloud: Cloud) -> None:
    host = cloud.start("sleeper", 11, units={"count.service": ["sh", "-c", COUNT]})
    counted(host)
    hosts.freeze(host.pid)
    before = counted(host)
    time.sleep(0.2)
    assert counted(host) == before
    assert hosts.alive(host.pid, hosts.started_at(host.pid))
    hosts.freeze(host.pid)
    hosts.thaw(host.pid)
    eventually(lambda: counted(host) > before + 3)


def test_freezing_reaches_what_lies_in_namespaces_inside(cloud: Cloud) -> None:
    nested = ["unshare", "--pid", "--mount-proc", "--fork", "sh", "-c", COUNT]
    host = cloud.start("nested", 11, units={"count.service": nested})
    counted(host)
    hosts.freeze(host.pid)
    before = counted(host)
    time.sleep(0.2)
    assert counted(host) == before
    hosts.thaw(host.pid)
    eventually(lambda: counted(host) > before)


def test_a_host_whose_processes_multiply_is_frozen_whole(cloud: Cloud) -> None:
    forking = "while :; do (sleep 0.01; date +%N > /run/count) & wait; done"
    host = cloud.start("rabbit", 11, units={f"fork-{n}.service": ["sh", "-c", forking] for n in range(4)})
    host_count = host.outside("/run/count")
    eventually(lambda: host_count.read_text())
    hosts.freeze(host.pid)
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] for pid in hosts.processes(host.pid)]
    assert set(states) <= {"T", "Z", "D"}  # D: it waits in vfork(2) for a child that is stopped
    before = host_count.read_text()
    time.sleep(0.2)
    assert host_count.read_text() == before
    hosts.thaw(host.pid)
    eventually(lambda: host_count.read_text() not in (before, ""))


def test_a_frozen_host_can_be_killed(cloud: Cloud) -> None:
    host = cloud.start("cold", 11, units={"idle.service": IDLE})
    hosts.freeze(host.pid)
    hosts.kill(host.pid)
    assert hosts.processes(host.pid) == ()
    hosts.freeze(host.pid)
    hosts.thaw(host.pid)


# Processes, whatever they are called


@pytest.mark.parametrize("name", ["plain", "a) Z 1 (b", "S) S 1 2", "", "(((", "é" * 7])
def test_a_process_is_known_whatever_it_calls_itself(name: str) -> None:
    code = "import sys; open('/proc/self/comm', 'w').write(sys.argv[1] + chr(10)); print(flush=True); input()"
    command = [sys.executable, "-I", "-c", code, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        started = hosts.started_at(process.pid)
        assert started > hosts.started_at(os.getpid())
        assert hosts.alive(process.pid, started)
        process.communicate(b"\n")
    assert not hosts.alive(process.pid, started)


def test_nobody_is_not_alive_and_has_no_processes() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert not hosts.alive(gone.pid, 1)
    assert hosts.processes(gone.pid) == ()
    hosts.kill(gone.pid)
    hosts.freeze(gone.pid)
    hosts.thaw(gone.pid)
    with pytest.raises(FileNotFoundError):
        hosts.started_at(gone.pid)


def test_processes_of_other_hosts_are_other_processes(cloud: Cloud) -> None:
    one, two = (cloud.start(f"host-{n}", 10 + n, units={"idle.service": IDLE}) for n in (1, 2))
    assert not set(hosts.processes(one.pid)) & set(hosts.processes(two.pid))
    hosts.freeze(one.pid)
    assert two.run("hostname").stdout == "host-2\n"
    hosts.thaw(one.pid)
    hosts.kill(one.pid)
    assert two.run("hostname").stdout == "host-2\n"
    assert len(hosts.processes(two.pid)) == 2


def test_a_half_written_note_about_a_life_is_no_life(tmp_path: Path) -> None:
    assert hosts.running(tmp_path) is None
    (tmp_path / "life.json").write_text('{"pid": 1')
    assert hosts.running(tmp_path) is None
