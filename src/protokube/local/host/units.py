"""Control the units of a local host over the socket of its init."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

from protokube.errors import Refused, TryLater

SOCKET = Path("/run/protokube/units.sock")
SECONDS = 3.0


def end_host() -> None:
    """Have the init of this host end it: every unit gets SIGTERM first. To be called inside the host only."""
    os.kill(1, signal.SIGTERM)


class LocalUnits:
    """The service manager of a host of the local cloud."""

    def __init__(self, path: Path = SOCKET, seconds: float = SECONDS) -> None:
        self._path, self._seconds = path, seconds

    def ensure_started(self, unit: str) -> bool:
        return bool(self._ask({"start": unit})["changed"])

    def running_for(self, unit: str) -> float | None:
        seconds = self.status(unit)["seconds"]
        return None if seconds is None else float(seconds)

    def restart(self, unit: str) -> None:
        self._ask({"restart": unit})

    def status(self, unit: str) -> dict[str, Any]:
        """The status of a unit: state, pid, restarts, last_exit, and its sd_notify messages."""
        return self._ask({"status": unit})

    def _ask(self, request: dict[str, str]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(self._exchange(json.dumps(request).encode() + b"\n"))
        except (OSError, ValueError) as why:
            raise TryLater("the host's first process does not answer", saw=f"{why} at {self._path}") from why
        if "error" in answer:
            raise Refused(str(answer["error"]))
        return answer

    def _exchange(self, line: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(self._seconds)
            link.connect(str(self._path))
            link.sendall(line)
            with link.makefile("rb") as answers:
                return answers.readline()
