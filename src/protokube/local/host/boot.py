"""The short-lived process that creates one host: namespaces, network link, root file system, and then its init.

The daemon has threads, so it must not fork; it starts this program and passes the configuration on stdin. Progress is
reported through a pipe, one JSON object per line: the pid, then either an error or, from init itself, that it serves.
On any failure the namespaces end with this process and its child, and with them every mount and link.
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
"""In a host's folder: pid and start time of its init."""


def main() -> None:
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    try:
        boot(json.load(sys.stdin), report)
    except (OSError, ProtokubeError) as why:
        report_fields(report, error=getattr(why, "message", "") or "its root cannot be made", saw=_seen(why))
        os._exit(1)


def boot(config: dict[str, Any], report: int) -> None:
    os.umask(0o022)  # that of a booting machine, not that of the user who ran `up`
    folder, store = Path(config["folder"]), config["store"]
    rootfs.lay_out(folder, config["name"], config["address"])
    (folder / "run/protokube/init.json").write_text(json.dumps(config["init"]))
    syscalls.unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS)
    socket.sethostname(config["name"])
    network.plug(config["switch"], config["name"], config["address"])
    rootfs.build(folder, Path(config["state"]), Path(store) if store else None, config["programs"])
    gate, opener = os.pipe()
    syscalls.unshare(CLONE_NEWPID)  # last: the next child becomes PID 1 of the namespace
    child = os.fork()
    if child:
        draft = folder / f"{LIFE}.new"
        draft.write_text(json.dumps({"pid": child, "started": started_at(child)}))
        draft.replace(folder / LIFE)
        report_fields(report, pid=child)
        os.write(opener, b"!")
        os._exit(0)
    os.close(opener)
    if not os.read(gate, 1):  # its pid is recorded before it runs anything
        os._exit(1)
    rootfs.enter()
    os.set_inheritable(report, True)
    os.execve(config["command"][0], [*config["command"], str(report)], config["environment"])  # noqa: S606


def report_fields(report: int, **fields: object) -> None:
    os.write(report, json.dumps(fields).encode() + b"\n")


def _seen(why: OSError | ProtokubeError) -> str:
    if isinstance(why, ProtokubeError):
        return why.saw
    return f"{why.strerror or why}{f' ({why.filename})' if why.filename else ''}"
