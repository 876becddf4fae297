"""Report our state to systemd: sd_notify(3), implemented here, since it is one datagram.

If systemd does not listen, or is busy, the message is dropped: it never blocks us.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def notify(environment: Mapping[str, str] = os.environ, **fields: str) -> bool:
    """Send fields such as READY="1", STATUS="...", WATCHDOG="1"; return whether they were sent."""
    address = environment.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return False
    if address.startswith("@"):  # in the abstract namespace
        address = "\0" + address[1:]
    text = "\n".join(f"{name}={' '.join(value.splitlines())}" for name, value in fields.items())  # a line is a field
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        try:
            channel.sendto(text.encode(errors="replace"), socket.MSG_DONTWAIT, address)
        except OSError:
            return False
    return True


def watchdog_seconds(environment: Mapping[str, str] = os.environ) -> float | None:
    """The watchdog interval in seconds; None if systemd does not watch this process."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    try:
        seconds = int(environment["WATCHDOG_USEC"]) / 1e6
    except (KeyError, ValueError):
        return None
    return seconds if seconds > 0 else None
