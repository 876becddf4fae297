"""The init of a host: starts its units, restarts them when they end, reaps orphans.

It is PID 1 of its namespace, so the host ends when it does: no unit or client may make it exit, and it blocks in one
place only, the reactor. It runs before anything else in the host, and three hosts start at once, so it imports little
of the standard library: `dataclasses` alone would take a third of its start-up time.

SIGTERM shuts the host down: units get SIGTERM, then the processes that they left behind, such as etcd in a container of
containerd; what is left after a while is killed, and init exits.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from protokube.local.base.backoff import next_wait
from protokube.local.base.logs import open_log, trim
from protokube.local.base.reactor import Reactor, Timer
from protokube.local.base.syscalls import adopt_orphans
from protokube.local.host.notify import Notices
from protokube.local.host.unitsocket import Answer, UnitSocket

RUN, LOG = Path("/run/protokube"), Path("/var/log")
SECONDS_TO_STOP = 10.0
SECONDS_FOR_ORPHANS = 3.0
"""After all units ended; a container shim does not end by itself."""
SECONDS_BETWEEN_TRIMS = 10.0


class Unit:
    """A command that is restarted whenever it ends, once it was started."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name, self.command = name, command
        self.wanted = False
        self.pid: int | None = None
        self.since = self.wait = 0.0
        self.restarts = -1
        self.last_exit = ""
        self.notices = Notices()
        self.retry: Timer | None = None

    @property
    def state(self) -> str:
        if self.pid is not None:
            return "running"
        return "waiting" if self.wanted else "stopped"


class Init:
    """The units of one host."""

    def __init__(self, units: Mapping[str, Sequence[str]], run: Path, log: Path, reactor: Reactor) -> None:
        self._units = {name: Unit(name, command) for name, command in units.items()}
        self._run, self._log, self._reactor = run, log, reactor
        self._stopping = self._asked_orphans = False
        UnitSocket(run / "units.sock", reactor, self.answer)
        reactor.on_signals({signal.SIGCHLD: self.reap, signal.SIGTERM: self.stop, signal.SIGINT: self.stop})
        reactor.every(SECONDS_BETWEEN_TRIMS, self._trim)

    def answer(self, request: Mapping[str, object]) -> Answer:
        """One request from the socket: {"start": unit}, {"restart": unit} or {"status": unit}."""
        match request:
            case {"start": str(name)} if name in self._units:
                return {"changed": self.start(name)}
            case {"status": str(name)} if name in self._units:
                return self.status(name)
            case {"restart": str(name)} if name in self._units:
                return {"changed": self.restart(name)}
            case {"start": name} | {"restart": name} | {"status": name}:
                return {"error": f"no unit {name!r} here; there are {', '.join(sorted(self._units))}"}
        return {"error": "ask for start, restart or status of a unit"}

    def start(self, name: str) -> bool:
        """Start a unit, and keep it running; return whether that is new."""
        unit = self._units[name]
        if unit.wanted or self._stopping:
            return False
        unit.wanted = True
        self._spawn(unit)
        return True

    def restart(self, name: str) -> bool:
        """End a running unit, so that it is started again; return whether it ran."""
        unit = self._units[name]
        if unit.pid is None or self._stopping:
            return False
        os.kill(unit.pid, signal.SIGTERM)
        self._reactor.after(SECONDS_TO_STOP, partial(self._kill, unit, unit.pid))
        return True

    def _kill(self, unit: Unit, pid: int) -> None:
        """Kill a unit that ignored SIGTERM; its pid cannot be reused before it is reaped."""
        if unit.pid == pid:
            os.killpg(pid, signal.SIGKILL)

    def status(self, name: str) -> Answer:
        unit = self._units[name]
        now = self._reactor.now()
        return {
            "unit": name,
            "state": unit.state,
            "pid": unit.pid,
            "restarts": max(unit.restarts, 0),
            "wait": unit.wait,
            "seconds": round(now - unit.since, 3) if unit.pid is not None else None,
            "last_exit": unit.last_exit,
            **unit.notices.snapshot(now),
        }

    def _spawn(self, unit: Unit) -> None:
        unit.retry = None
        unit.restarts += 1
        unit.since = self._reactor.now()
        try:
            unit.pid = self._run_command(unit)
        except OSError as why:  # no such program, or a full disk: may be fixed before the retry
            self._ended(unit, f"cannot be started: {why.strerror}: {why.filename or unit.command[0]}")

    def _run_command(self, unit: Unit) -> int:
        if not unit.notices.path:
            unit.notices.listen(self._run / f"notify-{unit.name}.sock", self._reactor)
        unit.notices.forget()
        log = open_log(self._log / f"{unit.name}.log")
        try:
            return os.posix_spawnp(
                unit.command[0],
                list(unit.command),
                {**os.environ, "NOTIFY_SOCKET": str(unit.notices.path)},
                file_actions=[(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
                setsid=True,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores both, and a child would inherit that
            )
        finally:
            os.close(log)

    def reap(self) -> None:
        """Reap every child that ended; most are orphans."""
        any_left = True
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                any_left = False
                break
            if not pid:
                break
            for unit in self._units.values():
                if unit.pid == pid:
                    with suppress(ProcessLookupError):  # what it leaves behind would run beside its restart
                        os.killpg(pid, signal.SIGKILL)
                    code = os.waitstatus_to_exitcode(status)
                    self._ended(unit, f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}")
        if self._stopping and all(unit.pid is None for unit in self._units.values()):
            self._end_orphans(any_left=any_left)

    def _end_orphans(self, *, any_left: bool) -> None:
        """All units have ended: ask what they left behind to end, and wait a while for it."""
        if not any_left or os.getpid() != 1:  # elsewhere, as in tests, they are not ours alone
            self._reactor.stop()
        elif not self._asked_orphans:
            self._asked_orphans = True
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGTERM)
            self._reactor.after(SECONDS_FOR_ORPHANS, self._reactor.stop)

    def _ended(self, unit: Unit, how: str) -> None:
        lived = self._reactor.now() - unit.since
        unit.pid, unit.last_exit = None, how
        with suppress(OSError):  # a full disk
            sys.stderr.write(f"{unit.name} ended after {lived:.3f} s: {how}\n")
        if unit.wanted and not self._stopping:
            unit.wait = next_wait(unit.wait, lived, first=0.2, most=10.0, reset=10.0)
            unit.retry = self._reactor.after(unit.wait, partial(self._spawn, unit))

    def stop(self) -> None:
        """Send SIGTERM to every unit; the loop ends with the last one, or after SECONDS_TO_STOP."""
        if self._stopping:
            return
        self._stopping = True
        for unit in self._units.values():
            if unit.retry is not None:
                unit.retry.cancel()
            if unit.pid is not None:
                os.kill(unit.pid, signal.SIGTERM)
        self._reactor.after(SECONDS_TO_STOP, self._reactor.stop)
        self.reap()

    def kill_remaining(self) -> None:
        for unit in self._units.values():
            if unit.pid is not None:
                os.killpg(unit.pid, signal.SIGKILL)

    def _trim(self) -> None:
        for name in self._units:
            trim(self._log / f"{name}.log")


def main() -> None:
    """Arguments: a file descriptor on which to report readiness and, for tests, the folders of sockets and logs."""
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    run, log = (Path(sys.argv[2]), Path(sys.argv[3])) if len(sys.argv) > 2 else (RUN, LOG)
    config = json.loads((run / "init.json").read_text())
    adopt_orphans()
    reactor = Reactor()
    init = Init({**config["startable"], **config["units"]}, run, log, reactor)
    for name in config["units"]:
        init.start(name)
    os.write(report, b'{"ready": true}\n')
    os.close(report)
    reactor.run()
    init.kill_remaining()


if __name__ == "__main__":
    main()
