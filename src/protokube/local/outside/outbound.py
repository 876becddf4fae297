"""Outbound network access of one cloud: set up as configured, restarted when it fails, ended with the daemon.

The user's network is not changed: slirp4netns runs there as a process, and holds the other end of a tap device in the
switch. It exits with the daemon, however that ends: the kernel closes our end of a pipe. Until the next daemon starts,
hosts are isolated, and the switch rejects their outbound packets at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from protokube.errors import InvalidRequest, ProtokubeError
from protokube.local.base.backoff import next_wait
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.dns.names import Names
from protokube.local.host import hosts, leftovers
from protokube.local.outside import routes
from protokube.local.outside.config import SETTING, OutsideConfig, in_one_line
from protokube.local.outside.process import READY_SECONDS, OutsideProcess
from protokube.local.outside.slirp import Program

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT, LONG_LIFE = 0.2, 30.0, 60.0


class Outside:
    """Keeps outbound network access as configured."""

    def __init__(self, paths: Paths, database: Database, names: Names) -> None:
        self.paths, self.database, self.names = paths, database, names
        self._changing = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._reached = False
        self._failure = ""
        self._tried = asyncio.Event()

    @property
    def config(self) -> OutsideConfig:
        return OutsideConfig.read(self.database.setting(SETTING, {}))

    def state(self) -> dict[str, Any]:
        """For status: whether hosts reach the outside, and why not."""
        config = self.config
        why = "" if self._reached else config.why_closed or self._failure or "it is being set up"
        return {"isolated": config.isolated, "reached": self._reached, "why": why}

    async def start(self) -> None:
        """Set it up as stored."""
        for pid in leftovers.outside_processes(self.paths):  # the former daemon's, about to exit: it has the tap device
            with suppress(ProtokubeError):
                await asyncio.to_thread(hosts.kill, pid)
        if self.config.isolated is not None:
            await self._begin()

    async def set_outside(self, isolated: bool, **more: Any) -> dict[str, Any]:
        """Store and apply a new configuration; return once it is in effect, or the first attempt has failed."""
        try:
            config = OutsideConfig.read({"isolated": isolated, **more})
        except TypeError as wrong:
            raise InvalidRequest("the configuration of the way outside is invalid", saw=str(wrong)) from wrong
        _ = config.inside  # invalid ranges are refused before they are stored
        async with self._changing:
            unchanged = config == self.config and self._reached == config.open
            self.database.set(SETTING, asdict(config))
            if not unchanged:
                await self.close()
                await self._begin()
            if config.open:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._tried.wait(), READY_SECONDS)
        return self.state()

    def admit(self, pid: int) -> None:
        """Set the routes of a host that just started; called in any thread."""
        if (config := self.config).isolated is not None:
            self._change_host(pid, open_=config.open)

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None

    async def _begin(self) -> None:
        config = self.config
        self._tried.clear()
        self._failure = ""
        self.names.forward_to(None)
        await asyncio.to_thread(routes.close_switch, self.paths.switch, config.inside)
        # By /proc, not by the registry: a host that is starting is found there, or gets its routes by `admit` later.
        running = await asyncio.to_thread(leftovers.inits, self.paths)
        for pid in running.values():
            await asyncio.to_thread(self._change_host, pid, open_=config.open)
        if config.open:
            self._keeper = asyncio.create_task(self._keep(config))

    def _change_host(self, pid: int, *, open_: bool) -> None:
        try:
            (routes.open_host if open_ else routes.close_host)(pid)
        except (ProtokubeError, OSError) as why:  # usually the host died meanwhile
            log.warning("the routes of the host of process %d stay as they are: %s", pid, why)

    async def _keep(self, config: OutsideConfig) -> None:
        """Restart slirp4netns with back-off whenever it ends."""
        wait = 0.0
        while True:
            began = time.monotonic()
            try:
                self._failure = await self._live(config)
            except ProtokubeError as why:
                self._failure = in_one_line(why)
            except OSError as why:  # includes TimeoutError, whose text is empty
                self._failure = str(why) or "slirp4netns was not ready in time"
            finally:
                self._reached = False
            self._tried.set()
            wait = next_wait(wait, time.monotonic() - began, first=FIRST_WAIT, most=LONGEST_WAIT, reset=LONG_LIFE)
            log.warning("no way outside, next attempt in %g s: %s", wait, self._failure)
            await asyncio.sleep(wait)

    async def _live(self, config: OutsideConfig) -> str:
        """Run slirp4netns once; return how it ended, with its last log lines."""
        program = Program(path=config.program, libraries=config.libraries)
        process = OutsideProcess(program, self.paths)
        try:
            await process.until_ready()
            await asyncio.to_thread(routes.open_switch, self.paths.switch, config.inside)
            self._forward_names(config)
            self._reached = True
            self._tried.set()
            log.info("hosts reach the outside (process %d)", process.pid)
            return await process.until_ended()
        finally:
            process.end()

    def _forward_names(self, config: OutsideConfig) -> None:
        from protokube.local.dns.forward import Forwarder  # its library takes longer to import than all the rest
        from protokube.local.dns.policy import Policy

        self.names.forward_to(Forwarder(Policy.of(config.domains, config.inside.everything)))
