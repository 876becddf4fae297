"""The network of a local cloud: a switch in a namespace of its own, and a cable from it to each host.

Nothing is put into the user's own network namespace: no bridge, no route, no veth. So clouds side by side use the same
addresses and never meet. A host can reach nothing but its siblings, unless `outside` gives the switch a way out.

The kernel gives up what it has no route for before any rule sees it, also what the rules of Services would have sent to
a sibling. So what a host itself sends has a way to the switch, and whatever really goes there is sent back at once.

A cable ends with its host: the kernel removes both ends when the host's namespace goes, a moment later.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.local.base.syscalls import CLONE_NEWNET, setns

GATEWAY, PREFIX = "10.77.0.1", 24
ELSEWHERE, LAST = 77, 33000
"""A table of routes, and the place of the rule that leads there: behind all others."""
NO_WAY = 4_000_000_000
"""The metric of the route to nowhere, the last resort: any other default comes before it."""
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
"""Of the network that the thread is in."""
BRIDGE, CABLE = "br0", "eth0"
NAMED = Path("/run/netns")
"""Where iproute2 keeps namespaces that have a name."""
SECONDS = 10.0


def switch_path(name: str) -> Path:
    """The network namespace of a switch, for `enter`."""
    return NAMED / name


def make_switch(name: str) -> None:
    """Make the switch whole, however much of it is there."""
    place = switch_path(name)
    if not _is_namespace(place):
        place.unlink(missing_ok=True)  # a name without a namespace is left by a crash, or by a reboot where /run lasts
        run_ip("netns", "add", name)
    with enter(place):
        commands = ["link set lo up"]
        if BRIDGE not in interfaces():
            # A bridge without an address of its own takes that of a port, and changes it as ports come and go.
            commands.append(f"link add {BRIDGE} address {_hardware_address(GATEWAY)} type bridge")
        commands += [f"address replace {GATEWAY}/{PREFIX} dev {BRIDGE}", f"link set {BRIDGE} up"]
        commands.append(f"route replace unreachable default metric {NO_WAY}")
        batch(commands)
        FORWARDING.write_text("1")  # without, it would not say that it knows no way: there is none but to its hosts


def remove_switch(name: str) -> None:
    """Cut every cable and forget the switch; one that is not there is fine."""
    if switch_path(name).exists():
        run_ip("netns", "delete", name)


@contextmanager
def enter(path: Path) -> Iterator[None]:
    """Be in another network namespace, with this thread only, and back: sockets made inside stay there.

    Processes started inside are in it, too. Nothing may be awaited inside: another task would find itself there.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as missing:
            raise TryLater(f"there is no network namespace {path}", hint="`protokube up` makes it again") from missing
        try:
            setns(there, CLONE_NEWNET)
        except OSError as why:
            raise Refused(f"cannot enter the network namespace {path}", saw=str(why), hint="run it as root") from why
        finally:
            os.close(there)
        try:
            yield
        finally:
            setns(home, CLONE_NEWNET)
    finally:
        os.close(home)


def port(host: str) -> str:
    """What a host's end of the cable is called in the switch; interface names end at 15 characters."""
    return f"p{hashlib.sha256(host.encode()).hexdigest()[:12]}"


def plug(switch: str, host: str, address: str) -> None:
    """Lay a cable from the switch to the network namespace that this thread is in."""
    name = port(host)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with enter(switch_path(switch)):
            old = [f"link delete {name}"] if name in interfaces() else []
            far_end = f"name {CABLE} address {_hardware_address(address)} netns /proc/self/fd/{home}"
            cable = [f"link add {name} type veth peer {far_end}", f"link set {name} alias {host} master {BRIDGE} up"]
            batch([*old, *cable], inherit=[home])
    finally:
        os.close(home)
    own = ["link set lo up", f"address add {address}/{PREFIX} broadcast + dev {CABLE}", f"link set {CABLE} up"]
    # for the host alone: what its pods send to nowhere is better refused by the host, which they know
    way = f"route add default via {GATEWAY} table {ELSEWHERE}"
    batch([*own, way, f"rule add iif lo lookup {ELSEWHERE} pref {LAST}"])


def cut(switch: str, host: str, *, down: bool) -> None:
    """Pull a host's cable, or plug it in again. Nobody is told: packets just stop."""
    with enter(switch_path(switch)):
        if port(host) not in interfaces():
            raise TryLater(f"{host} has no cable in switch {switch}", hint="a host gets one when it starts")
        batch([f"link set {port(host)} {'down' if down else 'up'}"])


def _hardware_address(address: str) -> str:
    """Derived from the address, so that neighbours need not forget anything when a later host gets it."""
    return "02:50:" + ":".join(f"{octet:02x}" for octet in socket.inet_aton(address))


def interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def _is_namespace(path: Path) -> bool:
    try:
        with enter(path):
            return True
    except (TryLater, Refused):
        return False


def batch(commands: Sequence[str], inherit: Sequence[int] = ()) -> None:
    """Many commands in one process of iproute2; the first that fails ends it."""
    run_ip("-batch", "-", text="".join(f"{command}\n" for command in commands), inherit=inherit)


def run_ip(*arguments: str, text: str = "", inherit: Sequence[int] = ()) -> None:
    program = shutil.which("ip", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if program is None:
        raise Refused("the network of the local cloud needs the program `ip`", hint="apt-get install iproute2")
    try:
        ran = subprocess.run(  # noqa: S603
            [program, *arguments], input=text, capture_output=True, text=True, timeout=SECONDS, pass_fds=inherit
        )
    except subprocess.TimeoutExpired as late:
        raise TryLater(f"`ip` took longer than {SECONDS:g} seconds", saw=text or " ".join(arguments)) from late
    if ran.returncode:
        hint = "" if os.geteuid() == 0 else "run it as root"
        raise Refused(f"`ip {' '.join(arguments)}` failed", saw=(ran.stderr.strip() + "\n" + text).strip(), hint=hint)
