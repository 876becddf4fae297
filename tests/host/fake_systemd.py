"""A service that speaks the part of systemd's D-Bus API that we use, with units that behave as a test says.

Run as a process of its own: `fake_systemd.py ADDRESS UNITS LOG`. UNITS is JSON, by unit: `load` and `active` are its
states, `start` is what comes of starting it (`ok`, `hang`, or the name of an error), `hang` hangs before that, `since`
is when its process was started. Every start that was asked for is a line in LOG.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jeepney import (  # type: ignore[import-untyped]
    HeaderFields,
    MessageType,
    message_bus,
    new_error,
    new_method_return,
)
from jeepney.io.blocking import open_dbus_connection  # type: ignore[import-untyped]

SYSTEMD = "org.freedesktop.systemd1"


class Error(Exception):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, text)
        self.name, self.text = name, text


class Systemd:
    def __init__(self, units: dict[str, dict[str, str]], log: Path) -> None:
        self._units, self._log = units, log

    def answer(self, member: str, path: str, body: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]] | None:
        """The reply's signature and values; None if there never is one."""
        match member:
            case "LoadUnit":
                return self._load(body[0])
            case "StartUnit":
                return self._start(*body)
            case "TryRestartUnit":
                return self._start(body[0], body[1], verb="restart ")
            case "Get" if body[1] == "ExecMainStartTimestampMonotonic":
                return "v", (("t", int(self._units[path_to_name(path)].get("since", "0"))),)
            case "Get":
                unit = self._units.get(path_to_name(path), {"load": "not-found"})
                states = {"LoadState": unit.get("load", "loaded"), "ActiveState": unit.get("active", "inactive")}
                return "v", (("s", states[body[1]]),)
        raise Error("org.freedesktop.DBus.Error.UnknownMethod", member)

    def _load(self, name: str) -> tuple[str, tuple[Any, ...]] | None:
        """Real systemd makes an object for every valid name, whether or not there is a file."""
        if not name.endswith(".service"):
            raise Error("org.freedesktop.DBus.Error.InvalidArgs", f"Unit name {name} is not valid.")
        return None if self._units.get(name, {}).get("hang") else ("o", (name_to_path(name),))

    def _start(self, name: str, mode: str, verb: str = "") -> tuple[str, tuple[Any, ...]] | None:
        with self._log.open("a") as log:
            log.write(f"{verb}{name} {mode}\n")
        outcome = self._units[name].get("start", "ok")
        if outcome == "hang":
            return None
        if outcome != "ok":
            raise Error(outcome, f"Failed to start {name}")
        self._units[name]["active"] = "activating"
        return "o", ("/org/freedesktop/systemd1/job/1",)


def name_to_path(name: str) -> str:
    """As systemd escapes it: everything but letters and digits by its number."""
    escaped = "".join(sign if sign.isalnum() else f"_{ord(sign):02x}" for sign in name)
    return f"/org/freedesktop/systemd1/unit/{escaped}"


def path_to_name(path: str) -> str:
    first, *rest = path.rpartition("/")[2].split("_")
    return first + "".join(chr(int(part[:2], 16)) + part[2:] for part in rest)


def main(address: str, units: str, log: str) -> None:
    systemd = Systemd(json.loads(units), Path(log))
    with open_dbus_connection(address) as connection:
        connection.send_and_get_reply(message_bus.RequestName(SYSTEMD))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            call = connection.receive()
            if call.header.message_type is not MessageType.method_call:
                continue
            fields = call.header.fields
            try:
                answer = systemd.answer(fields[HeaderFields.member], fields[HeaderFields.path], call.body)
            except Error as error:
                connection.send(new_error(call, error.name, "s", (error.text,)))
                continue
            if answer is not None:
                connection.send(new_method_return(call, *answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
