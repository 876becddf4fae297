"""A real local cluster for tests: brought up by the real command, taken down at the end whatever happened.

Its state lies in a folder of its own below /tmp, with a short name, since the paths of sockets end at 108 characters.
Everything is seen from outside: by the commands a user has, by the admin socket, and by asking the members themselves.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import dns.message
import dns.query

from builders.command import COMMAND, Answer, environment
from clusters.machine_census import Census
from protokube.cli.render.tree import view_tree
from protokube.errors import ProtokubeError
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.tls import TlsFiles
from protokube.host.usage import used_by
from protokube.local.base.paths import Paths
from protokube.local.bringup import dns_address
from protokube.local.disk import loops, mounts
from protokube.local.drill.writer import Writer
from protokube.local.view.look import Looker
from protokube.providers.clients.local import LocalClient

UP_SECONDS = 240.0
"""For a command on a busy machine; it says itself what it waits for long before."""
SECONDS = 90.0
Seen = TypeVar("Seen")


def until(look: Callable[[], Seen | None], what: str, seconds: float = SECONDS, every: float = 0.1) -> Seen:
    """What was seen, once that is something; whoever does not answer is asked again."""
    end = time.monotonic() + seconds
    said = ""
    while True:
        try:
            if seen := look():
                return seen
        except (ProtokubeError, OSError, ValueError) as why:
            said = str(why)
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}. {said}"
        time.sleep(every)


class RealCluster:
    """One cluster. Use it as a context: it is gone afterwards, and that is checked."""

    within: Sequence[str] = ()
    """The beginning of a command that runs the rest of it somewhere else."""

    def __init__(self, name: str = "", state: Path | None = None) -> None:
        self.name = name or f"t{secrets.token_hex(3)}"
        self._own_state = state is None
        self.state = state or Path(tempfile.mkdtemp(prefix="pkc-", dir="/tmp"))
        self.paths = Paths.at(self.state / self.name)
        self.admin = LocalClient(self.paths.admin_socket, patience=60)
        self.told: dict[str, Any] = {}
        self._clients: list[GatewayEtcd] = []

    # The commands of a user.

    def run(self, *words: str, seconds: float = UP_SECONDS, **variables: str) -> Answer:
        env = environment(PROTOKUBE_STATE=str(self.state), **variables)
        command = [*self.within, *COMMAND, *words]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=env)
        return Answer(ran.returncode, ran.stdout, ran.stderr)

    def up(self, *words: str) -> Self:
        words = words if "--kubernetes" in words else ("--kubernetes", "none", *words)
        words = words if "--kubelet" in words else ("--no-kubelet", *words)
        said = self.run("up", "--cluster", self.name, "--output", "json", "--timeout", "180", *words, seconds=500)
        assert said.code == 0, said.err + self._why()
        self.told = json.loads(said.out)
        return self

    def write_spec(self, **fields: Any) -> Path:
        """A spec of this cluster; who has used it removes it, or the end would find it."""
        named = {"apiVersion": "protokube.io/v1alpha1", "kind": "Cluster", "metadata": {"name": self.name}}
        file = self.state / "spec.yaml"
        file.write_text(json.dumps({**named, "spec": {"cloud": "local", **fields}}))
        return file

    def status(self) -> dict[str, Any]:
        """What `status --output json` prints; looked at from here, since tests that wait ask for it all the time."""
        if self.within:
            return self._printed_status()
        with Looker(self.paths) as looker:
            told: dict[str, Any] = json.loads(json.dumps(view_tree(looker.look())))
        return told

    def _printed_status(self) -> dict[str, Any]:
        said = self.run("status", "--cluster", self.name, "--output", "json")
        assert said.out, said.err
        told: dict[str, Any] = json.loads(said.out)
        return told

    def healthy(self) -> set[str]:
        """`main/a`: the members that answered just now; on a busy machine one may be late for once."""
        return {each["member"] for each in self.status()["members"] if each["healthy"]}

    def until_ready(self, seconds: float = SECONDS) -> dict[str, Any]:
        said = self.run("status", "--cluster", self.name, "--wait", "--timeout", f"{seconds:g}s", "--output", "json")
        assert said.code == 0, said.err + said.out + self._why()
        told: dict[str, Any] = json.loads(said.out)
        return told

    def answers(self, name: str, kind: str = "A") -> list[str]:
        """What the DNS server of the cloud says of a name."""
        host, _, port = dns_address(self.admin).rpartition(":")
        answer = dns.query.udp(dns.message.make_query(name, kind), host, port=int(port), timeout=5)
        return sorted(each.to_text() for rrset in answer.answer for each in rrset)

    # Hosts and disks, as the operator of the cloud has them.

    def hosts(self) -> list[dict[str, Any]]:
        """Those that live."""
        return [host for host in self.admin.call("hosts") if not host["dead"]]

    def host_of(self, member: str, etcd: str = "main") -> str:
        """Who holds the volume of a member now."""
        return str(until(lambda: self.volume(member, etcd)["attached_to"], f"somebody holds {etcd}/{member}"))

    def volume(self, member: str, etcd: str = "main") -> dict[str, Any]:
        (found,) = [x for x in self.admin.call("volumes") if (x["etcd_cluster"], x["member"]) == (etcd, member)]
        assert isinstance(found, dict)
        return found

    def template(self, group: str) -> dict[str, Any]:
        with sqlite3.connect(f"file:{self.paths.database}?mode=ro", uri=True) as database:
            ((text,),) = database.execute("SELECT template FROM groups WHERE name = ?", (group,)).fetchall()
        database.close()
        told: dict[str, Any] = json.loads(text)
        return told

    def set_group(self, group: str, size: int, **template: Any) -> None:
        self.admin.call("set_group", name=group, size=size, template={**self.template(group), **template})

    def power_off(self, *, held: Sequence[str] = ()) -> None:
        """Kill every host at once and let none come back; the groups in `held` do not even when the others do."""
        self.admin.call("pause_group")
        self.admin.call("power_off")
        for group in held:
            self.set_group(group, 0)
        until(lambda: not [h for h in self.admin.call("hosts") if h["running"]], "every host is off")
        until(self._are_disks_unbound, "no disk is bound any more")

    def _are_disks_unbound(self) -> bool:
        """ValueError names who still has one."""
        for loop in loops.bound_under(self.paths.disks):
            users = [*map(str, mounts.who_has({loop.number})), *used_by(loop.number)]
            raise ValueError(f"{loop.image.name} is {loop.path}, cut: {loop.is_cut}; {'; '.join(users) or 'unused'}")
        return True

    def power_on(self) -> None:
        self.admin.call("resume_group")

    def inside(self, host: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run something in a host, as if its console had been used."""
        pid = next(each["pid"] for each in self.admin.call("hosts") if each["name"] == host)
        entered = ["nsenter", f"--target={pid}", "--mount", "--net", "--uts", "--pid", "--", *command]
        return subprocess.run(entered, capture_output=True, text=True, cwd="/", timeout=60)

    def on_disk(self, volume: str, script: str) -> str:
        """Run a script in the file system of a volume that no host has; `$1` is where it is mounted."""
        steps = f'set -e; mount -o loop "$2" "$1"; cd "$1"; {script}\ncd /; umount "$1"'
        with tempfile.TemporaryDirectory(prefix="pkc-disk-", dir="/tmp") as point:
            enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", steps, "sh", point]
            ran = subprocess.run([*enter, self.paths.image(volume)], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        until(lambda: not loops.bound(self.paths.image(volume)), "the disk is let go")
        return ran.stdout

    def agent_of(self, host: str) -> int:
        """The process id of a host's agent on this machine: the one below its first process that runs `agent`."""
        first = next(int(each["pid"]) for each in self.hosts() if each["name"] == host)
        namespace = Path(f"/proc/{first}/ns/pid").readlink()
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if entry.name.isdigit() and (entry / "ns/pid").readlink() == namespace and b"agent" in words:
                    return int(entry.name)
            except OSError:
                continue
        raise AssertionError(f"no agent runs in {host}")

    # What the agents say.

    def agents(self) -> dict[str, dict[str, Any]]:
        """The last word of the agent of each living host that has said any."""
        found = {}
        for host in self.hosts():
            with suppress(OSError, ValueError):
                file = self.paths.host(host["name"]) / "run/protokube/status.json"
                found[host["name"]] = json.loads(file.read_text())
        return found

    def notes(self, kind: str) -> list[dict[str, str]]:
        """What all agents wait for (`waiting`), or want a person for (`needsAPerson`), or fail at (`broken`)."""
        return [
            {"step": "", "about": "", "hint": "", **note, "host": host}
            for host, told in self.agents().items()
            for note in told["report"][kind]
        ]

    # etcd, asked through ports of this machine.

    @property
    def endpoints(self) -> dict[str, str]:
        """Client URLs by member, of the first etcd cluster."""
        urls = self.told["env"]["ETCDCTL_ENDPOINTS"].split(",")
        return {f"etcd-{letter}": url for letter, url in zip("abcdefghi", urls, strict=False)}

    @property
    def tls(self) -> TlsFiles:
        folder = self.paths.root / "client"
        return TlsFiles(ca=folder / "ca.crt", cert=folder / "client.crt", key=folder / "client.key")

    def client(self, *members: str, timeout: float = 20.0) -> GatewayEtcd:
        chosen = {name: self.endpoints[name] for name in members or self.endpoints}
        self._clients.append(GatewayEtcd(chosen, self.tls, timeout=timeout))
        return self._clients[-1]

    @contextmanager
    def writing(self, *members: str, every: float = 0.02) -> Iterator[Writer]:
        """Numbered keys below a prefix of their own, one after the other, for as long as this lasts."""
        prefix = f"/written/{secrets.token_hex(4)}/"
        with Writer(self.client(*members, timeout=1.0), prefix, every=every) as writer:
            yield writer

    def etcdctl(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The user's own, with the variables that `up` printed."""
        env = environment(**{**self.told["env"], **variables})
        return subprocess.run([self.told["etcdctl"], *words], capture_output=True, text=True, timeout=30, env=env)

    # The end.

    def down(self) -> None:
        """By the real command; asserts that nothing of the cluster is left on this machine."""
        census = Census.of(self.paths)
        self.close_clients()
        said = self.run("down", "--cluster", self.name)
        assert said.code == 0, said.err
        census.nothing_is_left()

    def close_clients(self) -> None:
        while self._clients:
            self._clients.pop().close()

    def _why(self) -> str:
        """What a person would look at next."""
        logs = [self.paths.log, *self.paths.hosts.glob("*/var/log/protokube.service.log")]
        return "".join(f"\n--- {file}\n{tail(file)}" for file in logs if file.exists())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is not None:
                sys.stderr.write(self._why())
            if self.paths.root.exists():
                self.down()
        finally:
            self.close_clients()
            if self._own_state and not self.paths.root.exists():
                shutil.rmtree(self.state)


def tail(file: Path, lines: int = 15) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-lines:]) + "\n"
