"""Which units must restart since something they read was changed: notes that survive a kill.

A unit restarts because of `restart_on` only after such a change. Between the change and the restart nodeup may be
killed, and then no look at files and units tells that the restart is still to come. So the intention is written down
before the change, and removed after the restart. The notes lie below /run: a reboot restarts every unit anyway.
"""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import quote


class Restarts:
    """One file for each unit, with the keys of the tasks whose change it has not seen yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._draft = folder / ".draft"
        self._lock = threading.Lock()

    def tidy(self) -> None:
        """Remove what a killed run was about to write; for the one who holds the lock of this machine."""
        self._draft.unlink(missing_ok=True)

    def pending(self, unit: str) -> tuple[str, ...]:
        """Keys of the tasks that changed, or may have, since the unit was started."""
        try:
            return tuple(self._file(unit).read_text(encoding="utf-8", errors="replace").splitlines())
        except FileNotFoundError:
            return ()

    def note(self, unit: str, key: str) -> bool:
        """Write down that this task is about to change; whether that is new."""
        with self._lock:
            known = self.pending(unit)
            if key in known:
                return False
            self._write(unit, (*known, key))
            return True

    def withdraw(self, unit: str, key: str) -> None:
        """The change did not happen."""
        with self._lock:
            self._write(unit, tuple(each for each in self.pending(unit) if each != key))

    def done(self, unit: str) -> None:
        """It was restarted, or does not run."""
        self._file(unit).unlink(missing_ok=True)

    def _write(self, unit: str, keys: tuple[str, ...]) -> None:
        if not keys:
            self.done(unit)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._draft.write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
        self._draft.replace(self._file(unit))

    def _file(self, unit: str) -> Path:
        return self._folder / quote(unit, safe="@")
