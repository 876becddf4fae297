"""Check a container once, in a child process with a deadline, so that the runner never blocks.

The check runs in that child: a failing check raises, and the message appears in the status.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Callable
from fcntl import ioctl

from protokube.local.base import syscalls
from protokube.local.base.reactor import Reactor
from protokube.local.pods.children import Child
from protokube.local.pods.probestate import Check, Exec, HttpGet, Probe, TcpSocket

SIOCGIFADDR = 0x8915


class CheckFailed(Exception):
    """A failed check; the message gives the reason."""


def start_check(probe: Probe, container: int, finished: Callable[[str | None], None], reactor: Reactor) -> Child:
    """Start one check of the container with this PID 1; `finished` gets None on success, else the reason."""
    if isinstance(probe.check, HttpGet) and probe.check.secure:
        import ssl  # noqa: F401  once here, so that no child has to
    late = False

    def too_late() -> None:
        nonlocal late
        late = True
        child.kill_group()

    def ended(code: int, report: str) -> None:
        timer.cancel()
        if late:
            finished(f"no answer within {probe.timeout:g} seconds")
        else:
            finished(None if code == 0 else report or f"exit code {code}")

    child = Child(lambda: run_check(probe.check, container, probe.timeout), ended, reactor)
    timer = reactor.after(probe.timeout, too_late)
    return child


def run_check(check: Check, container: int, timeout: float) -> None:
    match check:
        case HttpGet():
            _get(check, timeout)
        case TcpSocket(host=host, port=port):
            _connect(host, port, timeout).close()
        case Exec(command=command):
            _execute(command, container)


def _connect(host: str, port: int, timeout: float) -> socket.socket:
    return socket.create_connection((host or own_address(), port), timeout)


def _get(check: HttpGet, timeout: float) -> None:
    with _connect(check.host, check.port, timeout) as plain:
        link = _secure(plain) if check.secure else plain
        link.sendall(_request(check))
        with link.makefile("rb") as answer:
            status = answer.readline(1024).decode(errors="replace").split()
    if len(status) < 2 or not status[0].startswith("HTTP/") or not status[1].isdigit():
        raise CheckFailed(f"the answer is not HTTP: {' '.join(status)[:80]!r}")
    if not 200 <= int(status[1]) < 400:
        raise CheckFailed(f"HTTP status {status[1]}")


def _secure(plain: socket.socket) -> socket.socket:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # as kubelet: a probe does not verify the certificate
    return context.wrap_socket(plain)


def _request(check: HttpGet) -> bytes:
    headers = {"host": f"{check.host or own_address()}:{check.port}", "user-agent": "kube-probe/protokube"}
    headers |= {name.lower(): value for name, value in check.headers} | {"connection": "close"}
    lines = [f"GET {check.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def _execute(command: tuple[str, ...], container: int) -> None:
    """Run a command in the namespaces of the container; fails if the command does."""
    for kind, flag in (("pid", syscalls.CLONE_NEWPID), ("mnt", syscalls.CLONE_NEWNS)):
        handle = os.open(f"/proc/{container}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        syscalls.setns(handle, flag)
    inside = os.fork()  # setns moves only future children into a PID namespace
    if not inside:
        syscalls.die_with_parent()
        os.execvp(command[0], command)  # noqa: S606
    code = os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1])
    if code:
        how = f"exit code {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"
        raise CheckFailed(f"{command[0]}: {how}")


def own_address(interface: str = "eth0") -> str:
    """The host's address, which its pods share; 127.0.0.1 without a network interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = ioctl(any_socket, SIOCGIFADDR, struct.pack("16s16x", interface.encode()))
        except OSError:
            return "127.0.0.1"
    return socket.inet_ntoa(answer[20:24])
