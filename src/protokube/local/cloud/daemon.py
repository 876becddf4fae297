"""The daemon of one cluster's local cloud: `python -m protokube.local.cloud.daemon STATE`.

It may be killed at any moment: hosts run on without it, and the next daemon adopts them. SIGTERM ends the daemon
only; `cleanup` removes the cloud. `daemon.pid` appears when every socket answers.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from protokube.errors import InvalidRequest, ProtokubeError, Refused
from protokube.local.base import private
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud import rights
from protokube.local.cloud.api import Api
from protokube.local.cloud.cloud import Cloud
from protokube.local.cloud.exposed import Exposures
from protokube.local.cloud.group import Groups
from protokube.local.cloud.host_registry import Host
from protokube.local.cloud.ports import Forwards
from protokube.local.cloud.template import Template
from protokube.local.dns.names import Names
from protokube.local.host import cgroups, hosts, leftovers, network
from protokube.local.outside.outbound import Outside

log = logging.getLogger("protokube.local")

WORKERS = 32
"""Concurrent calls that wait for a disk or a process: one for each host, and those of the operator."""


class Daemon:
    """All parts of one cloud, started in order."""

    def __init__(self, paths: Paths, database: Database) -> None:
        self.paths = paths
        self.cloud = Cloud(paths, database, hosts)
        self.workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="call")
        self.api = Api(paths, self.cloud, self.workers)
        self.names = Names(database, paths.switch)
        self.forwards = Forwards(database, paths.switch)
        self.exposures = Exposures(paths, database)
        self.outside = Outside(paths, database, self.names)
        self.groups = Groups(
            self.cloud,
            self.workers,
            self.start_host,
            open_socket=self.api.serve_host,
            close_socket=self.api.forget_host,
        )
        self.stopped = asyncio.Event()

    async def run(self) -> None:
        """Serve until `stopped` is set."""
        network.make_switch(self.paths.switch)
        self._kill_unknown_hosts()
        gone = self.cloud.restore()
        if gone:
            log.info("died while the daemon was down: %s", ", ".join(gone))
        await self.names.start()
        await self.exposures.start()  # before forwards, which take any free port if theirs is taken
        await self.forwards.ensure()
        await self.outside.start()
        self.api.admin_calls.update(
            about=self.about,
            set_dns=self.names.set_dns,
            set_outside=self.outside.set_outside,
            groups=self.groups.list_groups,
            set_group=self.groups.set_group,
            delete_group=self.groups.delete_group,
            pause_group=self.groups.pause_group,
            resume_group=self.groups.resume_group,
            forwards=self.forward,
            expose=self.exposures.expose,
            unexpose=self.exposures.unexpose,
            stop=self.stop,
        )
        await self.groups.adopt()
        await self.api.serve_admin()
        write_pid(self.paths)
        log.info("the local cloud of %s serves (pid %d)", self.paths.cluster, os.getpid())
        self.groups.reconcile()
        await self.stopped.wait()
        await self.close()

    async def about(self) -> dict[str, Any]:
        return {
            "cluster": self.paths.cluster,
            "state": str(self.paths.root),
            "pid": os.getpid(),
            "switch": self.paths.switch,
            "zones": self.names.zones,
            "dns_port": self.names.port,
            "outside": self.outside.state(),
            "exposed": self.exposures.state(),
            "groups": [{"name": group.name, "size": group.size} for group in self.groups.groups()],
            "not_starting": dict(self.groups.not_starting),
            "paused": self.cloud.database.setting("paused", False),
        }

    async def forward(self, wanted: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        """Add the wanted forwards, [{"name": ..., "port": ...}], and return all of them."""
        try:
            pairs = [(str(each["name"]), int(each["port"])) for each in wanted or []]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidRequest("a forward leads to a name and a port", saw=str(wanted)) from error
        return [asdict(forward) for forward in await self.forwards.ensure(pairs)]

    async def stop(self) -> None:
        """Stop after the reply was sent."""
        asyncio.get_running_loop().call_later(0.05, self.stopped.set)

    def start_host(self, host: Host, template: Template) -> tuple[int, int]:
        folder = self.paths.host(host.name)
        template.write_files(folder)
        gone = [each.name for each in self.cloud.registry.all_hosts() if each.dead]
        cgroups.sweep(cgroups.name(self.paths.switch), gone)
        pid = hosts.start(
            hosts.HostSpec(
                name=host.name,
                folder=folder,
                address=host.address,
                switch=self.paths.switch,
                state=self.paths.root,
                store=self.paths.store if host.master else None,
                units=template.units,
                startable=template.startable,
                path=template.path,
                environment=template.environment,
                shown=template.shown,
            )
        )
        self.outside.admit(pid)
        return pid, hosts.started_at(pid)

    def _kill_unknown_hosts(self) -> None:
        """Kill hosts that run but are not registered: the daemon was killed while it started them."""
        known = {host.pid for host in self.cloud.registry.all_hosts()}
        for name, pid in leftovers.inits(self.paths).items():
            if pid not in known:
                log.info("%s was not started completely: killed", name)
                hosts.kill(pid)

    async def close(self) -> None:
        self.paths.pid_file.unlink(missing_ok=True)
        self.groups.close()
        self.forwards.close()
        self.exposures.close()
        self.api.close()
        await self.outside.close()
        await self.names.close()
        self.workers.shutdown(wait=False, cancel_futures=True)


def take_lock(paths: Paths) -> int:
    """Ensure one daemon per folder; the kernel releases the lock however the daemon ends."""
    lock = os.open(paths.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise Refused(
            f"the local cloud of {paths.cluster} runs already", saw=f"process {leftovers.daemon(paths)}"
        ) from None
    return lock


def write_pid(paths: Paths) -> None:
    draft = paths.pid_file.with_suffix(".new")
    draft.write_text(f"{os.getpid()}\n")
    draft.replace(paths.pid_file)


async def serve(paths: Paths, database: Database) -> None:
    daemon = Daemon(paths, database)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stopped.set)
    await daemon.run()


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m protokube.local.cloud.daemon STATE\n")
        return 2
    paths = Paths.at(Path(arguments[0]))
    try:
        paths.create()
        take_lock(paths)
        closed = rights.tighten(paths)
        paths.pid_file.unlink(missing_ok=True)
        paths.stopped.unlink(missing_ok=True)
        os.close(private.open_file(paths.log, os.O_WRONLY))
        logging.basicConfig(filename=paths.log, format="%(asctime)s %(message)s", level=logging.INFO)
        if closed:
            log.warning("could be read by others, no longer: %s", ", ".join(map(str, closed)))
        database = Database(paths.database)
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(paths, database))
        database.close()
    except ProtokubeError as why:
        sys.stderr.write(f"error: {why}\n")
        return int(why.exit_code)
    log.info("the daemon ends; hosts run on")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
