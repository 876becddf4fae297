"""Start systemd units over D-Bus: checked each round, so that a unit that died is started again.

The hard part is that nothing here may block: a bus that is gone, a busy systemd or a unit that takes a minute to start
must cost the round at most two seconds. So a start job is queued, and never awaited.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from protokube.errors import ProtokubeError, Refused, TryLater

if TYPE_CHECKING:
    from protokube.host.dbus import Bus, BusError

T = TypeVar("T")
SYSTEMD, ROOT = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
RUNNING = frozenset({"active", "activating", "reloading", "refreshing"})
FOR_A_PERSON = {
    f"{SYSTEMD}.NoSuchUnit": "nodeup installs it; see `protokube nodeup`",
    f"{SYSTEMD}.UnitMasked": "`systemctl unmask` lets it start again",
    f"{SYSTEMD}.LoadFailed": "`systemctl status` shows what is wrong with its file",
    f"{SYSTEMD}.BadUnitSetting": "`systemctl status` shows what is wrong with its file",
    f"{SYSTEMD}.OnlyByDependency": "it can only be started as a dependency of another unit",
    "org.freedesktop.DBus.Error.InvalidArgs": "a unit is called, say, kubelet.service",
    "org.freedesktop.DBus.Error.AccessDenied": "the agent has to run as root",
    "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired": "the agent has to run as root",
}
"""Errors that a retry cannot fix, with a hint for each."""
UNUSABLE = {
    "not-found": ("there is no unit {}", FOR_A_PERSON[f"{SYSTEMD}.NoSuchUnit"]),
    "masked": ("{} is masked", FOR_A_PERSON[f"{SYSTEMD}.UnitMasked"]),
    "bad-setting": ("the file of {} is not valid", FOR_A_PERSON[f"{SYSTEMD}.BadUnitSetting"]),
    "error": ("the file of {} cannot be read", FOR_A_PERSON[f"{SYSTEMD}.LoadFailed"]),
}


class SystemdUnits:
    """Implements Units with the systemd of this machine."""

    def __init__(self, address: str = "SYSTEM", timeout: float = 2.0) -> None:
        """`SYSTEM` means DBUS_SYSTEM_BUS_ADDRESS, or the default address of the system bus."""
        self._address, self._timeout = address, timeout

    def ensure_started(self, unit: str) -> bool:
        return self._asked(_ensure_started, unit)

    def running_for(self, unit: str) -> float | None:
        return self._asked(_running_for, unit)

    def restart(self, unit: str) -> None:
        self._asked(_restart, unit)

    def _asked(self, question: Callable[[Bus, str], T], unit: str) -> T:
        from protokube.host.dbus import Bus, BusError

        try:
            with Bus(self._address, time.monotonic() + self._timeout) as bus:
                return question(bus, unit)
        except BusError as error:
            raise _explained(unit, error) from error
        except (OSError, RuntimeError, ValueError) as error:  # no socket, no such transport, no authentication
            raise TryLater(
                f"cannot ask systemd for {unit}",
                saw=str(error) or type(error).__name__,
                hint="`systemctl status dbus` shows whether the bus runs",
            ) from error


def _ensure_started(bus: Bus, unit: str) -> bool:
    path = bus.call(SYSTEMD, ROOT, f"{SYSTEMD}.Manager", "LoadUnit", "s", unit)
    if bus.read(SYSTEMD, path, f"{SYSTEMD}.Unit", "ActiveState") in RUNNING:
        return False  # even if its unit file is gone by now
    loaded = bus.read(SYSTEMD, path, f"{SYSTEMD}.Unit", "LoadState")
    if loaded in UNUSABLE:
        message, hint = UNUSABLE[loaded]
        raise Refused(message.format(unit), saw=f"LoadState={loaded}", hint=hint)
    bus.call(SYSTEMD, ROOT, f"{SYSTEMD}.Manager", "StartUnit", "ss", unit, "replace")
    return True


def _running_for(bus: Bus, unit: str) -> float | None:
    """By the monotonic clock, which systemd uses too."""
    path = bus.call(SYSTEMD, ROOT, f"{SYSTEMD}.Manager", "LoadUnit", "s", unit)
    if bus.read(SYSTEMD, path, f"{SYSTEMD}.Unit", "ActiveState") != "active":
        return None
    microseconds = bus.read(SYSTEMD, path, f"{SYSTEMD}.Service", "ExecMainStartTimestampMonotonic")
    return time.monotonic() - microseconds / 1e6 if microseconds else None


def _restart(bus: Bus, unit: str) -> None:
    bus.call(SYSTEMD, ROOT, f"{SYSTEMD}.Manager", "TryRestartUnit", "ss", unit, "replace")


def _explained(unit: str, error: BusError) -> ProtokubeError:
    if error.name in FOR_A_PERSON:
        return Refused(f"systemd will not start {unit}", saw=str(error), hint=FOR_A_PERSON[error.name])
    return TryLater(f"systemd did not start {unit} now", saw=str(error))
