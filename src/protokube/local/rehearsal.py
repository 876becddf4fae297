"""Start a copy of etcd's data with one program after the other: `python -m protokube.local.rehearsal DATA PROGRAM...`.

The copy holds every Secret of the cluster. So it runs in a network namespace of its own, where nobody else can connect
to it, and ends with this process. Prints, as JSON, what each program reported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from protokube.errors import ProtokubeError, Refused
from protokube.etcd import Status
from protokube.etcd.client import GatewayEtcd
from protokube.local.base import syscalls

NAME, CLIENT, PEER = "default", "http://127.0.0.1:2379", "http://127.0.0.1:2380"
SECONDS, SECONDS_TO_STOP, EVERY = 120.0, 30.0, 0.1
"""A database of several gigabytes takes its time."""
LINES = 3


def main() -> None:
    data, *programs = sys.argv[1:]
    syscalls.die_with_parent()
    try:
        _leave_network()
        found = [_run(Path(program), Path(data)) for program in programs]
    except ProtokubeError as why:
        sys.exit(f"{why.message}: {why.saw}" if why.saw else why.message)
    sys.stdout.write(json.dumps([{"version": each.version, "revision": each.revision} for each in found]))


def _leave_network() -> None:
    """A network namespace with a loopback interface alone."""
    try:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        ran = subprocess.run(["ip", "link", "set", "lo", "up"], capture_output=True, text=True)  # noqa: S607
    except OSError as why:
        raise Refused("no network namespace can be made for the copy", saw=str(why)) from why
    if ran.returncode:
        raise Refused("the loopback interface of the copy's network does not come up", saw=ran.stderr.strip())


def _run(program: Path, data: Path) -> Status:
    log = data.with_name(f"{data.name}.log")
    command = [
        "setpriv", "--pdeathsig=KILL", str(program), f"--name={NAME}", f"--data-dir={data}",
        f"--listen-client-urls={CLIENT}", f"--advertise-client-urls={CLIENT}", f"--listen-peer-urls={PEER}",
    ]  # fmt: skip
    with log.open("wb") as output, _started(command, output) as etcd:
        client = GatewayEtcd({NAME: CLIENT})
        try:
            return _answer(client, etcd, program, log)
        finally:
            client.close()
            etcd.terminate()
            try:
                etcd.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                etcd.kill()


def _started(command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdout=output, stderr=output)  # noqa: S603
    except OSError as why:
        raise Refused(f"{command[0]} cannot be started", saw=str(why)) from why


def _answer(client: GatewayEtcd, etcd: subprocess.Popen[bytes], program: Path, log: Path) -> Status:
    """Its status, once it serves a linearizable read."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            client.members()
            return client.status(NAME)
        except ProtokubeError as why:
            if etcd.poll() is not None or time.monotonic() > end:
                lines = log.read_text(errors="replace").splitlines()[-LINES:]
                ended = "ended" if etcd.poll() is not None else "does not answer"
                raise Refused(f"{program} {ended}", saw=" | ".join(lines) or why.message) from why
            time.sleep(EVERY)


if __name__ == "__main__":
    main()
