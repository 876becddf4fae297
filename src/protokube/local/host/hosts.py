"""Hosts of the local cloud: start one, look at it, stop its clock, pull its plug.

A host is a PID namespace with a root and a network of its own. Its first process is its life: when that is killed, the
kernel ends everything in the host and frees its mounts, as pulling the plug of a machine does. It lives on when the
daemon that started it dies, and is found again by `running`.

The caller has threads, so nothing here forks: a program of ours (`boot`) is started and told what to make.
"""

from __future__ import annotations

import json
import os
import re
import select
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.local.base import private
from protokube.local.base.processes import alive, freeze, kill, processes, started_at, thaw
from protokube.local.host.boot import LIFE

__all__ = ["HostSpec", "add_device", "alive", "freeze", "kill", "processes", "remove_device", "running", "start"]
__all__ += ["started_at", "thaw"]

SECONDS_TO_START = 20.0
PODRUNNER = "protokube.local.pods.runner"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """A host as it is to be. What lies in folder/etc before the start is its own: agent.json, say."""

    name: str
    folder: Path
    address: str
    switch: str
    state: Path
    """The folder of the cloud: nothing of it is seen inside but what is named here."""
    store: Path | None
    """The state store; None for a host that is no master."""
    units: Mapping[str, Sequence[str]]
    """Commands by unit that run from the start; an empty command is the built-in runner of static pods."""
    startable: Mapping[str, Sequence[str]]
    """The same, for units that run once somebody asks for them."""
    path: str
    """PATH inside; its folders are seen inside wherever they lie."""
    environment: Mapping[str, str]
    shown: Sequence[str] = ()
    """More folders that are seen inside, read-only, wherever they lie."""


def python(module: str) -> list[str]:
    """Run a module of ours with a Python that finds the package as we found it, however we were installed.

    Without `site`, which takes half of a start: what it would have worked out is handed over.
    """
    places = [place for place in sys.path if place]
    code = f"import sys; sys.path[:] = {places!r}; from {module} import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]


def start(spec: HostSpec) -> int:
    """Bring a host up: its first process's pid, once that serves. Nothing is left of a host that did not come up."""
    _check(spec)
    for folder in (spec.folder, spec.folder / "log"):
        private.make_folder(folder)
    reader, writer = os.pipe()
    try:
        try:
            boot = _run_boot(spec, writer)
        finally:
            os.close(writer)
        try:
            boot.communicate(json.dumps(_order(spec)).encode(), timeout=SECONDS_TO_START)
        except subprocess.TimeoutExpired:
            boot.kill()
            boot.wait()
        news = _listen(reader, time.monotonic() + SECONDS_TO_START)
    finally:
        os.close(reader)
    return _judge(spec, news)


def _run_boot(spec: HostSpec, report: int) -> subprocess.Popen[bytes]:
    with os.fdopen(private.open_file(spec.folder / "log" / "init.log", os.O_WRONLY | os.O_APPEND), "ab") as log:
        return subprocess.Popen(  # noqa: S603
            [*python("protokube.local.host.boot"), str(report)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=[report],
            env={"PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
        )


def _check(spec: HostSpec) -> None:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", spec.name):
        raise Refused(f"{spec.name!r} cannot be the name of a host", want="up to 63 of a-z, 0-9 and -")
    if os.geteuid() != 0:
        raise Refused("making a host needs root", hint="run it with sudo")
    if pid := running(spec.folder):
        raise Refused(f"host {spec.name} runs already", saw=f"pid {pid} in {spec.folder}")


def _order(spec: HostSpec) -> dict[str, Any]:
    """What `boot` and then `init` are told."""
    built_in = python(PODRUNNER)
    environment = {"HOME": "/root", "LANG": "C.UTF-8", **spec.environment, "PATH": spec.path}
    programs = [sys.prefix, sys.base_prefix, sys.executable, *sys.path, *spec.path.split(":"), *spec.shown]
    return {
        "name": spec.name,
        "folder": str(spec.folder.resolve()),
        "address": spec.address,
        "switch": spec.switch,
        "state": str(spec.state.resolve()),
        "store": str(spec.store.resolve()) if spec.store else None,
        "programs": sorted({*programs, *(str(Path(program).resolve()) for program in programs)}),
        "command": python("protokube.local.host.init"),
        "environment": environment,
        "init": {
            "units": {name: list(command) or built_in for name, command in spec.units.items()},
            "startable": {name: list(command) or built_in for name, command in spec.startable.items()},
        },
    }


def _listen(reader: int, deadline: float) -> dict[str, Any]:
    """Everything boot and init have told us, once they have nothing more to say."""
    told = b""
    while (left := deadline - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        more = os.read(reader, 65536)
        if not more:
            break
        told += more
    return {key: value for line in told.splitlines() for key, value in json.loads(line).items()}


def _judge(spec: HostSpec, news: dict[str, Any]) -> int:
    """The pid of a host that came up; else clear away what did, and say why not."""
    pid = news.get("pid")
    try:
        if "error" in news:
            raise Refused(f"host {spec.name} did not start: {news['error']}", saw=str(news["saw"]))
        if pid is None or "ready" not in news:
            raise TryLater(f"host {spec.name} did not start", saw=_tail(spec.folder / "log" / "init.log"))
    except ProtokubeError:
        if pid is not None:
            kill(pid)
        raise
    return int(pid)


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-8:]
    return "\n".join(lines) or f"nothing within {SECONDS_TO_START:g} seconds"


def running(folder: Path) -> int | None:
    """The first process of the host that lives in this folder, if it runs."""
    try:
        life = json.loads((folder / LIFE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return int(life["pid"]) if alive(life["pid"], life["started"]) else None


def add_device(pid: int, name: str, number: tuple[int, int]) -> None:
    """Have a block device appear as /dev/<name> inside, at once; what had the name before is replaced."""
    place = _device(pid, name)
    try:
        Path(f"/proc/{pid}/root/dev").stat()
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}.new")
        draft.unlink(missing_ok=True)
        os.mknod(draft, 0o660 | stat.S_IFBLK, os.makedev(*number))
        draft.replace(place)
    except (FileNotFoundError, ProcessLookupError) as gone:
        raise TryLater(f"the host of pid {pid} is gone", saw=str(gone)) from gone


def remove_device(pid: int, name: str) -> None:
    """Have it disappear; whoever has it open keeps it."""
    with suppress(FileNotFoundError, ProcessLookupError):
        _device(pid, name).unlink()


def _device(pid: int, name: str) -> Path:
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused(f"{name!r} cannot be the name of a device")
    return Path(f"/proc/{pid}/root/dev") / name
