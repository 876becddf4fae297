"""The way outside of one cloud: made as it is kept, made again when it breaks, gone with the daemon.

Nothing of it is put into the user's network: slirp4netns runs there as a process, and holds the other end of a tap
device in the switch. It ends when the daemon does, whatever ends that: the kernel closes our end of a pipe. Until the
next life of the daemon hosts are isolated, and are told so at once by the switch.
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
from protokube.local.outside.process import READY_SECONDS, OutsideProcess
from protokube.local.outside.slirp import Program
from protokube.local.outside.wish import SETTING, Wish, in_one_line

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT, LONG_LIFE = 0.2, 30.0, 60.0


class Outside:
    """Keeps the way outside as it is wished."""

    def __init__(self, paths: Paths, database: Database, names: Names) -> None:
        self.paths, self.database, self.names = paths, database, names
        self._changing = asyncio.Lock()
        self._keeping: asyncio.Task[None] | None = None
        self._reached = False
        self._trouble = ""
        self._tried = asyncio.Event()

    @property
    def wish(self) -> Wish:
        return Wish.read(self.database.setting(SETTING, {}))

    def state(self) -> dict[str, Any]:
        """For people: whether hosts reach the outside, and why not."""
        wish = self.wish
        why = "" if self._reached else wish.why_closed or self._trouble or "it is being made"
        return {"isolated": wish.isolated, "reached": self._reached, "why": why}

    async def start(self) -> None:
        """Go on as it is kept."""
        for pid in leftovers.outsiders(self.paths):  # of the former daemon, and just about to end: it has the device
            with suppress(ProtokubeError):
                await asyncio.to_thread(hosts.kill, pid)
        if self.wish.isolated is not None:
            await self._begin()

    async def set_outside(self, isolated: bool, **more: Any) -> dict[str, Any]:
        """Have it like this from now on; answers when it is, or when the first attempt has failed."""
        try:
            wish = Wish.read({"isolated": isolated, **more})
        except TypeError as wrong:
            raise InvalidRequest("that is no way outside", saw=str(wrong)) from wrong
        _ = wish.inside  # what cannot be read is refused before it is kept
        async with self._changing:
            unchanged = wish == self.wish and self._reached == wish.open
            self.database.set(SETTING, asdict(wish))
            if not unchanged:
                await self.close()
                await self._begin()
            if wish.open:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._tried.wait(), READY_SECONDS)
        return self.state()

    def admit(self, pid: int) -> None:
        """A host that has just started gets what the others have; called in any thread."""
        if (wish := self.wish).isolated is not None:
            self._change_host(pid, open_=wish.open)

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None

    async def _begin(self) -> None:
        wish = self.wish
        self._tried.clear()
        self._trouble = ""
        self.names.forward_to(None)
        await asyncio.to_thread(routes.close_switch, self.paths.switch, wish.inside)
        # By /proc, not by the census: a host that is just starting is found there, or asks `admit` later.
        running = await asyncio.to_thread(leftovers.inits, self.paths)
        for pid in running.values():
            await asyncio.to_thread(self._change_host, pid, open_=wish.open)
        if wish.open:
            self._keeping = asyncio.create_task(self._keep(wish))

    def _change_host(self, pid: int, *, open_: bool) -> None:
        try:
            (routes.open_host if open_ else routes.close_host)(pid)
        except (ProtokubeError, OSError) as why:  # mostly, it died meanwhile
            log.warning("the routes of the host of process %d stay as they are: %s", pid, why)

    async def _keep(self, wish: Wish) -> None:
        """One life of the process after the other."""
        wait = 0.0
        while True:
            began = time.monotonic()
            try:
                self._trouble = await self._live(wish)
            except ProtokubeError as why:
                self._trouble = in_one_line(why)
            except OSError as why:  # a TimeoutError is one, and says nothing
                self._trouble = str(why) or "slirp4netns was not ready in time"
            finally:
                self._reached = False
            self._tried.set()
            wait = next_wait(wait, time.monotonic() - began, first=FIRST_WAIT, most=LONGEST_WAIT, reset=LONG_LIFE)
            log.warning("no way outside, next attempt in %g s: %s", wait, self._trouble)
            await asyncio.sleep(wait)

    async def _live(self, wish: Wish) -> str:
        """From its start to its end; what it said last."""
        program = Program(path=wish.program, libraries=wish.libraries)
        process = OutsideProcess(program, self.paths)
        try:
            await process.until_ready()
            await asyncio.to_thread(routes.open_switch, self.paths.switch, wish.inside)
            self._forward_names(wish)
            self._reached = True
            self._tried.set()
            log.info("hosts reach the outside (process %d)", process.pid)
            return await process.until_ended()
        finally:
            process.end()

    def _forward_names(self, wish: Wish) -> None:
        from protokube.local.dns.forward import Forwarder  # its library takes longer to import than all the rest
        from protokube.local.dns.policy import Policy

        self.names.forward_to(Forwarder(Policy.of(wish.domains, wish.inside.everything)))
