"""The daemon with real hosts: who dies is replaced, disks move, and its own death changes nothing."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest

from builders.volumes import check_file_system
from clusters.daemon import LISTEN, RealCloud, kill, until
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.local.base.db import Database, KeptRecords
from protokube.local.host import hosts, leftovers
from protokube.providers.volumes.local import LocalVolumes
from protokube.records import Change, Record


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[RealCloud]:
    """For a test that kills its daemon, or everybody at once."""
    with RealCloud(tmp_path / "dev.test") as made:
        yield made.start()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCloud]:
    """For tests that have groups and members of their own."""
    with RealCloud(tmp_path_factory.mktemp("shared") / "dev.test") as made:
        yield made.start()


def point(cloud: RealCloud, name: str, address: str) -> None:
    """Have the name lead to an address, as an agent would by way of the name server."""
    database = Database(cloud.paths.database)
    after = Record(name=name, type="A", values=(address,), ttl=5)
    KeptRecords(database).save([Change(before=None, after=after, why="a test")])
    database.close()


def ask(port: int, text: str = "hello") -> list[str]:
    """Who answered, and what he had heard; nobody, if the connection broke."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(text.encode())
            return b"".join(iter(lambda: connection.recv(1000), b"")).decode().split("\n")
    except OSError:
        return [""]


def mount(cloud: RealCloud, host: dict[str, Any], volume: str, *, fresh: bool) -> None:
    LocalVolumes(cloud.client(host)).attach(volume)
    device = f"/dev/pk-{volume}"
    steps = [*([["mkfs.ext4", "-q", device]] if fresh else [["e2fsck", "-p", device]]), ["mount", device, "/mnt"]]
    for step in steps:
        ran = cloud.inside(host, *step)
        assert ran.returncode in (0, 1), ran.stderr


def test_a_killed_host_is_replaced_within_a_second_and_its_disk_moves_with_what_was_on_it(shared: RealCloud) -> None:
    volume = shared.founder("killed")
    old = shared.group("killed")[0]
    mount(shared, old, volume, fresh=True)
    shared.python(old, "import os; f = open('/mnt/key', 'w'); f.write('value'); f.flush(); os.fsync(f.fileno())")

    began = time.monotonic()
    shared.admin.call("kill_host", host=old["name"])
    new = until(lambda: [h for h in shared.running("killed") if h["name"] != old["name"]])[0]
    took = time.monotonic() - began

    assert took < 10  # 0.2 s where nothing else runs
    assert new["address"] != old["address"]
    until(lambda: shared.volume(volume)["attached_to"] is None)
    mount(shared, new, volume, fresh=False)
    assert shared.python(new, "print(open('/mnt/key').read())") == "value"


def test_a_frozen_host_that_was_declared_dead_wakes_up_to_errors_and_its_successor_serves(shared: RealCloud) -> None:
    volume = shared.founder("frozen")
    old = shared.group("frozen")[0]
    mount(shared, old, volume, fresh=True)
    writer = subprocess.Popen(
        ["nsenter", f"--target={old['pid']}", "--mount", "--pid", "--", sys.executable, "-c", WRITER],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ok\n"
    shared.admin.call("freeze_host", host=old["name"])

    shared.admin.call("declare_dead", host=old["name"], kill=False)
    new = shared.running("frozen")[0]
    mount(shared, new, volume, fresh=False)
    shared.python(new, "open('/mnt/mine', 'w').write('successor' * 1000)")
    shared.admin.call("thaw_host", host=old["name"])

    while writer.stdout.readline() == "ok\n":  # those from before it was frozen
        pass
    assert [writer.stdout.readline() for _ in range(5)] == ["EIO\n"] * 5
    seen = LocalVolumes(shared.client(old)).list_volumes()
    assert [each.attached_to for each in seen if each.id == volume] == [new["name"]]
    with pytest.raises(Refused, match="declared dead"):
        LocalVolumes(shared.client(old)).attach(volume)
    assert not shared.python(old, f"import os; print(os.path.exists('/dev/pk-{volume}') or '')")
    shared.inside(new, "umount", "/mnt")
    assert check_file_system(shared.paths.image(volume)) == ""
    writer.send_signal(signal.SIGCONT)  # nsenter itself, which stops with its child, perhaps long after it
    shared.admin.call("declare_dead", host=old["name"])
    writer.communicate(timeout=10)
    assert old["name"] not in [host["name"] for host in shared.admin.call("hosts")]


WRITER = """
import errno, os, time
file = os.open('/mnt/data', os.O_RDWR | os.O_CREAT)
while True:
    try:
        os.write(file, b'x')
        os.fsync(file)
        print('ok', flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
    time.sleep(0.01)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_hosts_outlive_their_daemon_and_the_next_one_goes_on_with_them(
    cloud: RealCloud, number: signal.Signals
) -> None:
    volume = cloud.founder()
    host = cloud.group("master-a", files={"/etc/protokube/agent.json": '{"cluster": "dev"}'})[0]
    LocalVolumes(cloud.client(host)).attach(volume)
    before = cloud.admin.call("volumes")

    code = cloud.end(number)

    assert code == (0 if number == signal.SIGTERM else -9)
    with pytest.raises(TryLater):
        cloud.admin.call("hosts")
    cloud.start()
    assert cloud.running("master-a") == [host]
    assert cloud.admin.call("volumes") == before
    said = cloud.python(
        host, "from protokube.providers.clients.local import LocalClient\nprint(LocalClient().call('me')['id'])"
    )
    assert said == host["name"]
    assert cloud.python(host, "print(open('/etc/protokube/agent.json').read())") == '{"cluster": "dev"}'
    kill(host["pid"])
    until(lambda: cloud.running("master-a")[0]["name"] != host["name"])
    until(lambda: cloud.admin.call("volumes")[0]["attached_to"] is None)  # while the next one starts


def test_a_host_that_dies_while_no_daemon_looks_is_replaced_by_the_next_one(cloud: RealCloud) -> None:
    volume = cloud.founder()
    host = cloud.group("master-a")[0]
    LocalVolumes(cloud.client(host)).attach(volume)
    cloud.end(signal.SIGKILL)
    kill(host["pid"])
    until(lambda: not hosts.alive(host["pid"], host["started"]))

    cloud.start()

    assert cloud.running("master-a")[0]["name"] != host["name"]
    assert cloud.admin.call("volumes")[0]["attached_to"] is None


def test_why_no_host_starts_is_known_until_one_does_and_is_logged_once_for_each_attempt(cloud: RealCloud) -> None:
    groups = ("master-a", "master-b", "master-c")
    aside = cloud.paths.store.with_name("aside")
    cloud.paths.store.rename(aside)
    for name in groups:
        cloud.admin.call("set_group", name=name, size=1, template={"master": True})

    def not_starting() -> dict[str, str]:
        found: dict[str, str] = cloud.admin.call("about")["not_starting"]
        return found

    until(lambda: set(not_starting()) == set(groups))
    assert all("its root cannot be made" in each and str(cloud.paths.store) in each for each in not_starting().values())
    until(lambda: cloud.paths.log.read_text().count("ended too soon") >= len(groups) * 2)
    aside.rename(cloud.paths.store)
    for name in groups:
        cloud.running(name)
    assert not_starting() == {}
    attempts = cloud.paths.log.read_text().count("could not be started")
    assert cloud.paths.log.read_text().count("ended too soon") <= attempts


def test_a_daemon_killed_while_it_starts_hosts_leaves_none_that_nobody_knows(cloud: RealCloud) -> None:
    for name in ("a", "b", "c"):
        cloud.admin.call("set_group", name=name, size=1, template={})
    time.sleep(0.05)
    cloud.end(signal.SIGKILL)
    time.sleep(0.3)

    cloud.start()

    known = {host["name"]: host["pid"] for host in cloud.running("a", "b", "c", count=3)}
    until(lambda: leftovers.inits(cloud.paths) == known)  # a half started one may take its time to notice


def test_there_is_one_daemon_for_each_folder(shared: RealCloud) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "protokube.local.cloud.daemon", str(shared.paths.root)], capture_output=True, text=True
    )

    assert second.returncode == 4
    assert "runs already" in second.stderr
    assert shared.daemon is not None
    assert str(shared.daemon.pid) in second.stderr
    assert shared.pid_said() == shared.daemon.pid == shared.admin.call("about")["pid"]


def test_a_folder_of_somebody_else_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    ran = subprocess.run(
        [sys.executable, "-m", "protokube.local.cloud.daemon", str(tmp_path)], capture_output=True, text=True
    )

    assert ran.returncode == 4
    assert "in use for something else" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_when_the_power_fails_every_host_is_new_and_a_paused_group_stays_empty(cloud: RealCloud) -> None:
    before = {host["name"] for host in cloud.group("a", "b")}

    assert set(cloud.admin.call("power_off")) == before

    after = {host["name"] for host in cloud.running("a", "b", count=2)}
    assert before.isdisjoint(after)
    cloud.admin.call("pause_group")
    cloud.admin.call("power_off")
    time.sleep(0.2)
    assert cloud.admin.call("hosts") == []
    cloud.admin.call("resume_group")
    cloud.running("a", "b", count=2)


def test_a_port_of_the_user_leads_to_whichever_host_has_the_name_now(shared: RealCloud) -> None:
    command = {"echo.service": [sys.executable, "-S", "-c", LISTEN]}
    first, second = shared.group("left", "right", units=command)
    (forward,) = shared.admin.call("forwards", wanted=[{"name": "etcd-a.dev.test", "port": 7000}])
    port = forward["local_port"]
    assert ask(port) == [""]  # no address yet: hung up on

    point(shared, "etcd-a.dev.test", first["address"])
    until(lambda: ask(port)[0] == first["name"])
    assert ask(port, "text") == [first["name"], "text"]
    point(shared, "etcd-a.dev.test", second["address"])
    until(lambda: ask(port)[0] == second["name"])

    shared.admin.call("cut_host", host=second["name"], down=True)
    assert ask(port)[0] != second["name"]
    shared.admin.call("cut_host", host=second["name"], down=False)
    until(lambda: ask(port)[0] == second["name"])


def test_a_forward_keeps_its_port_and_takes_another_if_somebody_else_has_it(cloud: RealCloud) -> None:
    wanted = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    before = cloud.admin.call("forwards", wanted=wanted)
    assert cloud.admin.call("forwards", wanted=wanted) == before
    cloud.end()
    with socket.create_server(("127.0.0.1", before[0]["local_port"])):
        cloud.start()

        after = cloud.admin.call("forwards")

    assert after[0]["local_port"] != before[0]["local_port"]
    assert after[1] == before[1]
    with pytest.raises(InvalidRequest, match="a name and a port"):
        cloud.admin.call("forwards", wanted=[{"name": "a"}])


def test_names_are_served_to_hosts_and_to_the_user_in_every_life_of_the_daemon(cloud: RealCloud) -> None:
    key = {"name": "agents", "secret": "c2VjcmV0"}
    served = cloud.admin.call("set_dns", zones=["dev.test"], keys=[key])
    host = cloud.group("master-a")[0]
    question = "import dns.resolver as r; q = r.Resolver(); q.lifetime = 20\nprint(q.resolve('ns.dev.test', 'A')[0])"

    assert cloud.python(host, question) == "10.77.0.1"
    assert cloud.admin.call("set_dns", zones=["dev.test"], keys=[key]) == served
    cloud.end(signal.SIGKILL)
    cloud.start()
    assert cloud.python(host, question) == "10.77.0.1"
    about = cloud.admin.call("about")
    assert (about["dns_port"], about["zones"]) == (served["port"], ["dev.test"])
    outside = dns.query.udp(dns.message.make_query("ns.dev.test", "A"), "127.0.0.1", 10, port=served["port"])
    assert "10.77.0.1" in outside.to_text()


@pytest.mark.parametrize("told", [{"zones": [], "keys": []}, {"zones": ["x"], "keys": [{"name": "k"}]}])
def test_names_that_cannot_be_served_are_refused(shared: RealCloud, told: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        shared.admin.call("set_dns", **told)


def test_stopping_the_daemon_answers_first_and_leaves_the_hosts(cloud: RealCloud) -> None:
    host = cloud.group("a")[0]

    assert cloud.admin.call("stop") is None

    assert cloud.daemon is not None
    assert cloud.daemon.wait(10) == 0
    assert not cloud.paths.pid_file.exists()
    assert not cloud.paths.admin_socket.exists()
    assert leftovers.inits(cloud.paths) == {host["name"]: host["pid"]}
    assert "hosts run on" in cloud.log()


def test_the_daemon_starts_without_what_it_does_not_need() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import json, sys, protokube.local.cloud.daemon; print(json.dumps(list(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )

    heavy = {"dns.message", "cryptography", "fsspec", "yaml", "click", "aiohttp", "protokube.agent"}
    assert heavy.isdisjoint(json.loads(loaded.stdout))


def test_called_without_a_folder_it_says_how() -> None:
    ran = subprocess.run([sys.executable, "-m", "protokube.local.cloud.daemon"], capture_output=True, text=True)

    assert ran.returncode == 2
    assert "usage" in ran.stderr


def test_a_daemon_closes_what_an_older_version_left_open_to_every_user(cloud: RealCloud) -> None:
    cloud.group("masters", master=True)
    cloud.founder()
    cloud.end()
    closed = [cloud.paths.root, cloud.paths.hosts, cloud.paths.database, cloud.paths.log, *cloud.paths.hosts.glob("*")]
    for each in closed:
        each.chmod(0o755 if each.is_dir() else 0o644)

    cloud.start()

    assert [each for each in closed if each.stat().st_mode & 0o077] == []
    assert "could be read by others, no longer: cloud.sqlite, daemon.log, hosts/masters-" in cloud.log()


def test_only_a_master_has_the_state_store(cloud: RealCloud) -> None:
    (cloud.paths.store / "key").write_text("a secret")
    (master,) = cloud.group("masters", master=True)
    (worker,) = cloud.group("workers", master=False)

    assert cloud.inside(master, "cat", "/srv/protokube/store/key").stdout == "a secret"
    assert cloud.inside(worker, "find", "/srv", "/run/protokube", "-name", "key").stdout == ""
    with pytest.raises(Refused, match="is no master"):
        cloud.client(worker).call("attach", volume=cloud.founder())
