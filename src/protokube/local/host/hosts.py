"""Hosts of the local cloud: start, inspect, freeze and kill them.

A host is a PID namespace with its own root file system and network. It lives as long as its init (PID 1): when that is
killed, the kernel kills every process of the host and frees its mounts, like a power cut. It survives the daemon that
started it, and `running` finds it again.

The caller has threads, so nothing here forks: the program `boot` is started with the host's configuration.
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
    """The wanted host. Files in folder/etc before the start, such as agent.json, are kept."""

    name: str
    folder: Path
    address: str
    switch: str
    state: Path
    """The folder of the cloud; hidden inside, except for the paths named here."""
    store: Path | None
    """The state store; None for a host that is not a master."""
    units: Mapping[str, Sequence[str]]
    """Commands of units that run from the start; an empty command is the built-in static pod runner."""
    startable: Mapping[str, Sequence[str]]
    """The same, for units that run once a process inside starts them."""
    path: str
    """PATH inside; its folders are bind-mounted wherever they are."""
    environment: Mapping[str, str]
    shown: Sequence[str] = ()
    """More folders to bind-mount read-only, wherever they are."""


def python(module: str) -> list[str]:
    """The command that runs a module of ours with our sys.path, however protokube was installed.

    Without `site`, which takes half of the start-up time: the sys.path it would compute is passed.
    """
    places = [place for place in sys.path if place]
    code = f"import sys; sys.path[:] = {places!r}; from {module} import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]


def start(spec: HostSpec) -> int:
    """Start a host; return the pid of its init once that serves. A host that fails to start is removed completely."""
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
            boot.communicate(json.dumps(_boot_config(spec)).encode(), timeout=SECONDS_TO_START)
        except subprocess.TimeoutExpired:
            boot.kill()
            boot.wait()
        report = _read_report(reader, time.monotonic() + SECONDS_TO_START)
    finally:
        os.close(reader)
    return _check_started(spec, report)


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


def _boot_config(spec: HostSpec) -> dict[str, Any]:
    """The configuration of `boot` and, in it, of `init`."""
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


def _read_report(reader: int, deadline: float) -> dict[str, Any]:
    """Everything that boot and init report, until both have closed the pipe."""
    output = b""
    while (left := deadline - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        more = os.read(reader, 65536)
        if not more:
            break
        output += more
    return {key: value for line in output.splitlines() for key, value in json.loads(line).items()}


def _check_started(spec: HostSpec, report: dict[str, Any]) -> int:
    """The pid of a host that started; else kill what is left of it, and raise the reason."""
    pid = report.get("pid")
    try:
        if "error" in report:
            raise Refused(f"host {spec.name} did not start: {report['error']}", saw=str(report["saw"]))
        if pid is None or "ready" not in report:
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
    """The pid of the init of this folder's host, if it runs."""
    try:
        life = json.loads((folder / LIFE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return int(life["pid"]) if alive(life["pid"], life["started"]) else None


def add_device(pid: int, name: str, number: tuple[int, int]) -> None:
    """Create a block device node /dev/<name> inside, atomically replacing one of that name."""
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
    """Remove the device node; processes that have it open keep it."""
    with suppress(FileNotFoundError, ProcessLookupError):
        _device(pid, name).unlink()


def _device(pid: int, name: str) -> Path:
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused(f"{name!r} cannot be the name of a device")
    return Path(f"/proc/{pid}/root/dev") / name
