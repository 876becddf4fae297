"""Where a drill takes place: the cloud that is told to break something, the cluster that is watched, etcd.

The Protocol is what the scripts need, so that they can be played on a pretended cluster; `LocalGround` is the real one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from protokube.errors import ProtokubeError, TryLater
from protokube.etcd.client import GatewayEtcd
from protokube.local.base.paths import Paths
from protokube.local.base.processes import processes
from protokube.local.drill import api_writing
from protokube.local.drill.api_writing import ApiHand
from protokube.local.drill.writer import Writer, as_found
from protokube.local.host import network
from protokube.local.view.cluster import ClusterView
from protokube.local.view.look import Looker, client_files
from protokube.local.view.values import HostView
from protokube.providers.clients.local import LocalClient

PREFIX = "/protokube/drills/"
LEASE = 3600
"""Seconds after which a drill's keys go by themselves, should nobody be left to remove them."""
GLANCE = 0.1
"""Seconds for members to answer while something else may happen."""
PATIENCE = 30.0
"""Seconds the cloud may take for what it is told; killing every host takes a while."""
WRITE_SECONDS, READ_SECONDS, OLD_SECONDS = 1.0, 10.0, 3.0


class Hand(Protocol):
    """A writer at work, and reading back what it wrote."""

    @property
    def writer(self) -> Writer: ...

    @property
    def api(self) -> ApiHand | None:
        """One that writes through the Kubernetes API meanwhile, where there is one."""

    def read_back(self) -> dict[str, str]:
        """All that is there now. TryLater without a quorum."""

    def landed(self, key: str) -> bool:
        """Whether a key of somebody else is there. TryLater without a quorum."""


class Old(Protocol):
    """A host that was declared dead and still runs."""

    def runs_etcd(self) -> bool: ...

    def write(self, key: str) -> bool:
        """Try to write through its own etcd, from inside; whether that was acknowledged."""


class Ground(Protocol):
    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def look(self) -> ClusterView:
        """With every member's answer, however long it takes."""

    def glance(self) -> ClusterView:
        """At once; who has not answered yet counts as not healthy."""

    def tell(self, call: str, **arguments: Any) -> Any:
        """Have the cloud do something."""

    def writing(self, view: ClusterView, key: str) -> Any:
        """A context in which a Hand writes; what was written is removed at its end."""

    def old(self, host: HostView, client_port: int) -> Old: ...


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

    def tell(self, call: str, **arguments: Any) -> Any:
        return self._cloud.call(call, **arguments)

    @contextmanager
    def writing(self, view: ClusterView, key: str) -> Iterator[Hand]:
        endpoints = {each.name: each.url for each in view.members if each.key == key}
        files = client_files(self.paths)
        etcd = GatewayEtcd(endpoints, files, timeout=WRITE_SECONDS)
        reader = GatewayEtcd(endpoints, files, timeout=READ_SECONDS)
        lease, drill = reader.grant(LEASE), secrets.token_hex(4)
        try:
            with (
                Writer(etcd, f"{PREFIX}{drill}/", lease=lease) as writer,
                api_writing.writing(self.paths, drill) as api,
            ):
                yield _Hand(writer, reader, api)
        finally:
            with suppress(ProtokubeError):  # it ends by itself; a drill that failed says so in other ways
                reader.revoke(lease)
            etcd.close()
            reader.close()

    def old(self, host: HostView, client_port: int) -> Old:
        return _OldHost(host, client_port, self.paths)

    def close(self) -> None:
        self._looker.close()
        os.close(self._lock)


def take_lock(file: Path) -> int:
    """One drill at a time: two would each take the other's blows for a broken promise."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise TryLater("another drill is under way in this cluster", saw=f"{file} is locked") from None
    return lock


class _Hand:
    def __init__(self, writer: Writer, reader: GatewayEtcd, api: ApiHand | None) -> None:
        self.writer, self._reader, self.api = writer, reader, api

    def read_back(self) -> dict[str, str]:
        return as_found(self._reader.read(self.writer.log().prefix))

    def landed(self, key: str) -> bool:
        return any(each.key == key for each in self._reader.read(key))


class _OldHost:
    """Asked from inside its own network, where its etcd listens whether or not anybody else can reach it."""

    def __init__(self, host: HostView, client_port: int, paths: Paths) -> None:
        assert host.pid is not None
        self._pid = host.pid
        self._url, self._files = f"https://127.0.0.1:{client_port}", client_files(paths)

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
