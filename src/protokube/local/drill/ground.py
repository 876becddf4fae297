"""The environment of a drill: the cloud that injects faults, the observed cluster, and etcd.

The scripts use the Protocol `Ground`, so that tests can run them on a fake cluster; `LocalGround` is the real one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from protokube.errors import ProtokubeError, TryLater
from protokube.etcd.client import GatewayEtcd
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.local.base.processes import processes
from protokube.local.drill import api_writing
from protokube.local.drill.api_writing import ApiWriteSession
from protokube.local.drill.writer import Writer, as_found
from protokube.local.host import network
from protokube.local.view.look import Looker
from protokube.providers.clients.local import LocalClient
from protokube.view.cluster import ClusterView
from protokube.view.values import HostView

PREFIX = "/protokube/drills/"
LEASE = 3600
"""Seconds; the TTL of a drill's keys, so that they expire if the drill is killed."""
GLANCE = 0.1
"""Seconds that members have to answer a quick look."""
PATIENCE = 30.0
"""Seconds that a call of the cloud may take; killing every host takes a while."""
WRITE_SECONDS, READ_SECONDS, OLD_SECONDS = 1.0, 10.0, 3.0


class WriteSession(Protocol):
    """A running writer, and reading back what it wrote."""

    @property
    def writer(self) -> Writer: ...

    @property
    def api(self) -> ApiWriteSession | None:
        """A second session that writes through the Kubernetes API, where there is one."""

    def read_back(self) -> dict[str, str]:
        """All keys and values of this session. TryLater without a quorum."""

    def landed(self, key: str) -> bool:
        """Whether a key that another client tried to write exists. TryLater without a quorum."""


class OldHost(Protocol):
    """A host that was declared dead but still runs."""

    def runs_etcd(self) -> bool: ...

    def write(self, key: str) -> bool:
        """Try to write through its own etcd, from inside its network; return whether that was acknowledged."""


class Ground(Protocol):
    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def look(self) -> ClusterView:
        """Observe the cluster; waits for every member's answer."""

    def glance(self) -> ClusterView:
        """Observe the cluster quickly; a member that does not answer at once counts as unhealthy."""

    def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the cloud."""

    def writing(self, view: ClusterView, key: str) -> Any:
        """A context with a running WriteSession; its keys are removed at the end."""

    def old_host(self, host: HostView, client_port: int) -> OldHost: ...


class LocalGround:
    """A real local cluster."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self._lock = take_lock(paths.root / "drill.lock")
        self._looker = Looker(paths)
        self._cloud = LocalClient(paths.admin_socket, patience=PATIENCE)

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def look(self) -> ClusterView:
        return self._looker.look()

    def glance(self) -> ClusterView:
        return self._looker.look(GLANCE)

    def call(self, method: str, **arguments: Any) -> Any:
        return self._cloud.call(method, **arguments)

    @contextmanager
    def writing(self, view: ClusterView, key: str) -> Iterator[WriteSession]:
        endpoints = {each.name: each.url or "" for each in view.members if each.key == key}
        files = client_files.etcd_tls(self.paths)
        with (
            closing(GatewayEtcd(endpoints, files, timeout=WRITE_SECONDS)) as etcd,
            closing(GatewayEtcd(endpoints, files, timeout=READ_SECONDS)) as reader,
        ):
            lease, drill = reader.grant(LEASE), secrets.token_hex(4)
            try:
                with (
                    Writer(etcd, f"{PREFIX}{drill}/", lease=lease) as writer,
                    api_writing.writing(self.paths, drill) as api,
                ):
                    yield _WriteSession(writer, reader, api)
            finally:
                with suppress(ProtokubeError):  # the lease expires by itself; a failed drill is reported elsewhere
                    reader.revoke(lease)

    def old_host(self, host: HostView, client_port: int) -> OldHost:
        return _LocalOldHost(host, client_port, self.paths)

    def close(self) -> None:
        self._looker.close()
        os.close(self._lock)


def take_lock(file: Path) -> int:
    """Allow one drill at a time: each of two would take the other's faults for a broken guarantee."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise TryLater("another drill is under way in this cluster", saw=f"{file} is locked") from None
    return lock


class _WriteSession:
    def __init__(self, writer: Writer, reader: GatewayEtcd, api: ApiWriteSession | None) -> None:
        self.writer, self._reader, self.api = writer, reader, api

    def read_back(self) -> dict[str, str]:
        return as_found(self._reader.read(self.writer.log().prefix))

    def landed(self, key: str) -> bool:
        return any(each.key == key for each in self._reader.read(key))


class _LocalOldHost:
    """Accessed from inside its own network namespace, where its etcd listens even if nothing else can reach it."""

    def __init__(self, host: HostView, client_port: int, paths: Paths) -> None:
        assert host.pid is not None
        self._pid = host.pid
        self._url, self._files = f"https://127.0.0.1:{client_port}", client_files.etcd_tls(paths)

    def runs_etcd(self) -> bool:
        return any(_program(each) == "etcd" for each in processes(self._pid))

    def write(self, key: str) -> bool:
        etcd = GatewayEtcd({"old": self._url}, self._files, timeout=OLD_SECONDS)
        try:
            with network.enter(Path(f"/proc/{self._pid}/ns/net")):
                etcd.put(key, "written by a holder of old")
        except (ProtokubeError, OSError):
            return False
        finally:
            etcd.close()
        return True


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
