"""systemd over D-Bus, with jobs that are waited for.

Starting a unit only queues a job. Whether it runs then is known when the job is gone: so it is asked for until then,
with a deadline, and a unit that failed is shown with its result and the last lines of its journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.host.systemd import FOR_A_PERSON, ROOT, SYSTEMD
from protokube.nodeup.machine import Machine, Say

if TYPE_CHECKING:
    from protokube.host.dbus import Bus

T = TypeVar("T")
MANAGER, UNIT, SERVICE = f"{SYSTEMD}.Manager", f"{SYSTEMD}.Unit", f"{SYSTEMD}.Service"
ANSWER_SECONDS = 30.0
"""For one question; a reload of all units takes seconds on a busy machine."""
JOB_SECONDS = 300.0
PAUSE = 0.05
REPORTED = 10.0
"""Seconds after which the wait for a unit is reported."""
JOURNAL_LINES = 5
NO_FILE = ("org.freedesktop.DBus.Error.FileNotFound", f"{SYSTEMD}.NoSuchUnit", "System.Error.ENOENT")
PROPERTIES = ("Job", "LoadState", "ActiveState", "SubState", "NeedDaemonReload")
"""The job comes first: once there is none, the states that are read after it are those it left."""
IN_BETWEEN = frozenset({"activating", "deactivating", "reloading", "refreshing"})
VERBS = {"StartUnit": "start", "StopUnit": "stop", "RestartUnit": "restart"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What systemd says of one unit."""

    load: str
    """LoadState: `loaded`, `not-found`, `masked`, `bad-setting`, `error`."""
    active: str
    """ActiveState."""
    sub: str
    file: str
    """UnitFileState: `enabled`, `disabled`, `static`, …; empty without a file."""
    needs_reload: bool
    job: int
    """The number of the job that is queued for it; 0 if there is none."""
    path: str

    @property
    def runs(self) -> bool:
        return self.active in ("active", "reloading", "refreshing")


class Systemd:
    """The service manager of one machine."""

    def __init__(self, machine: Machine, clock: Callable[[], float] = time.monotonic) -> None:
        self._machine, self._clock = machine, clock

    def look(self, name: str) -> Seen:
        def question(bus: Bus) -> Seen:
            path = bus.call(SYSTEMD, ROOT, MANAGER, "LoadUnit", "s", name)
            job, load, active, sub, needs = (bus.read(SYSTEMD, path, UNIT, each) for each in PROPERTIES)
            return Seen(
                load=load,
                active=active,
                sub=sub,
                file=file_state(bus, name),
                needs_reload=needs,
                job=job[0],
                path=path,
            )

        return self._asked(name, question)

    def reload(self) -> None:
        """Have systemd read all files of units again."""
        self._asked("its files", lambda bus: bus.call(SYSTEMD, ROOT, MANAGER, "Reload"))

    def enable(self, name: str) -> bool:
        """Return whether it can be enabled at all."""
        words = ("EnableUnitFiles", "asbb", [name], False, False)
        return bool(self._asked(name, lambda bus: bus.call(SYSTEMD, ROOT, MANAGER, *words)))

    def disable(self, name: str) -> None:
        self._asked(name, lambda bus: bus.call(SYSTEMD, ROOT, MANAGER, "DisableUnitFiles", "asb", [name], False))

    def started_at(self, name: str) -> float | None:
        """When it was started, by the wall clock; None if it does not run."""

        def question(bus: Bus) -> float | None:
            path = bus.call(SYSTEMD, ROOT, MANAGER, "LoadUnit", "s", name)
            if bus.read(SYSTEMD, path, UNIT, "ActiveState") in ("inactive", "failed"):
                return None
            # Of a service that systemd restarted by itself only the process is new.
            moments = [bus.read(SYSTEMD, path, UNIT, "InactiveExitTimestamp")]
            if name.endswith(".service"):
                moments.append(bus.read(SYSTEMD, path, SERVICE, "ExecMainStartTimestamp"))
            return max(moments) / 1e6 or None

        return self._asked(name, question)

    def run_job(self, name: str, verb: str, say: Say) -> None:
        """Queue `StartUnit`, `StopUnit` or `RestartUnit`, and wait for its end. Raises if the unit is not so then."""
        if verb != "StopUnit" and self.look(name).active == "failed":  # else it may have failed too often lately
            self._asked(name, lambda bus: bus.call(SYSTEMD, ROOT, MANAGER, "ResetFailedUnit", "s", name))
        self._asked(name, lambda bus: bus.call(SYSTEMD, ROOT, MANAGER, verb, "ss", name, "replace"))
        seen = self._wait_for_job(name, verb, say)
        as_asked = seen.active in ("inactive", "failed") if verb == "StopUnit" else seen.runs or self._succeeded(seen)
        if not as_asked:
            raise self._failed(name, verb, seen)

    def _wait_for_job(self, name: str, verb: str, say: Say) -> Seen:
        until, report_at = self._clock() + JOB_SECONDS, self._clock() + REPORTED
        while True:
            seen = self.look(name)
            if not seen.job and (seen.active not in IN_BETWEEN or seen.sub == "auto-restart"):
                return seen
            if self._clock() > until:
                raise TryLater(
                    f"{name} did not {VERBS[verb]} within {JOB_SECONDS:.0f} s",
                    saw=f"{seen.active} ({seen.sub})",
                    hint=f"`systemctl status {name}` shows what it waits for",
                )
            if self._clock() > report_at:
                say(f"waiting for {name}, which is {seen.active} ({seen.sub})")
                report_at = until
            time.sleep(PAUSE)

    def _succeeded(self, seen: Seen) -> bool:
        """Whether it is a service that runs to its end, and did."""
        if seen.active != "inactive" or not seen.path.endswith("_2eservice"):
            return False
        kind, result = self._service(seen, "Type", "Result")
        return bool(kind == "oneshot" and result == "success")

    def _failed(self, name: str, verb: str, seen: Seen) -> Refused:
        facts = [f"{seen.active} ({seen.sub})"]
        if name.endswith(".service"):
            result, status = self._service(seen, "Result", "ExecMainStatus")
            facts.append(f"result {result}, exit status {status}")
        if journal := self._journal(name):
            facts.append(f"its last lines: {journal}")
        hint = f"`systemctl status {name}` and `journalctl -u {name}` show more"
        return Refused(f"{name} did not {VERBS[verb]}", saw="; ".join(facts), hint=hint)

    def _service(self, seen: Seen, *names: str) -> list[Any]:
        """Properties that only services have."""
        return self._asked(seen.path, lambda bus: [bus.read(SYSTEMD, seen.path, SERVICE, each) for each in names])

    def _journal(self, name: str) -> str:
        words = ("journalctl", "--quiet", "--no-pager", "--output=cat", f"--lines={JOURNAL_LINES}", f"--unit={name}")
        try:
            ran = self._machine.run(words, seconds=10.0)
        except ProtokubeError:
            return ""
        return " | ".join(line.strip() for line in ran.output.splitlines() if line.strip()) if not ran.code else ""

    def _asked(self, name: str, question: Callable[[Bus], T]) -> T:
        from protokube.host.dbus import Bus, BusError

        try:
            with Bus(self._machine.bus, time.monotonic() + ANSWER_SECONDS) as bus:
                return question(bus)
        except BusError as error:
            if error.name in FOR_A_PERSON or error.name in NO_FILE:
                hint = FOR_A_PERSON.get(error.name, "a package brings it, or its content is to be given")
                raise Refused(f"systemd refuses to work on {name}", saw=str(error), hint=hint) from error
            raise TryLater(f"systemd did not do it for {name}", saw=str(error)) from error
        except (OSError, RuntimeError, ValueError) as error:
            raise TryLater(
                f"cannot ask systemd for {name}",
                saw=str(error) or type(error).__name__,
                hint="`systemctl status dbus` shows whether the bus runs",
            ) from error


def file_state(bus: Bus, name: str) -> str:
    from protokube.host.dbus import BusError

    try:
        return str(bus.call(SYSTEMD, ROOT, MANAGER, "GetUnitFileState", "s", name))
    except BusError as error:
        if error.name in NO_FILE:
            return ""
        raise
