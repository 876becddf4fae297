"""Runs as the short-lived process that makes one host: namespaces, cable, root, and then its first process.

The daemon that wants a host has threads, so it may not fork; it starts this program, and the order comes on stdin.
What became of it is told line by line through a pipe: the pid, then either an error or, by init itself, that it serves.
Whatever fails, the namespaces end with this process and its child, and with them every mount and cable.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError
from protokube.local.base import syscalls
from protokube.local.base.processes import started_at
from protokube.local.base.syscalls import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUTS
from protokube.local.host import network, rootfs

LIFE = "life.json"
"""In a host's folder: pid and start time of its first process."""


def main() -> None:
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    try:
        boot(json.load(sys.stdin), report)
    except (OSError, ProtokubeError) as why:
        tell(report, error=getattr(why, "message", "") or "its root cannot be made", saw=_seen(why))
        os._exit(1)


def boot(order: dict[str, Any], report: int) -> None:
    os.umask(0o022)  # as a machine boots, whatever the umask of the person who typed `up`
    folder, store = Path(order["folder"]), order["store"]
    rootfs.lay_out(folder, order["name"], order["address"])
    (folder / "run/protokube/init.json").write_text(json.dumps(order["init"]))
    syscalls.unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS)
    socket.sethostname(order["name"])
    network.plug(order["switch"], order["name"], order["address"])
    rootfs.build(folder, Path(order["state"]), Path(store) if store else None, order["programs"])
    gate, opener = os.pipe()
    syscalls.unshare(CLONE_NEWPID)  # last: the next child, whatever it is, is the first of the namespace
    child = os.fork()
    if child:
        draft = folder / f"{LIFE}.new"
        draft.write_text(json.dumps({"pid": child, "started": started_at(child)}))
        draft.replace(folder / LIFE)
        tell(report, pid=child)
        os.write(opener, b"!")
        os._exit(0)
    os.close(opener)
    if not os.read(gate, 1):  # it is known outside before anything of it runs
        os._exit(1)
    rootfs.enter()
    os.set_inheritable(report, True)
    os.execve(order["command"][0], [*order["command"], str(report)], order["environment"])  # noqa: S606


def tell(report: int, **news: object) -> None:
    os.write(report, json.dumps(news).encode() + b"\n")


def _seen(why: OSError | ProtokubeError) -> str:
    if isinstance(why, ProtokubeError):
        return why.saw
    return f"{why.strerror or why}{f' ({why.filename})' if why.filename else ''}"
