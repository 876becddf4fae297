"""The network of a local cloud: a switch (a bridge in its own network namespace) and a cable (a veth pair) per host.

The user's network namespace stays untouched: no bridge, no route, no veth. So several clouds use the same addresses
without conflict. A host reaches only the other hosts, unless `outside` gives the switch a route out.

The kernel drops a packet without a route before any iptables rule sees it, even if the rules of a Service would
redirect it to a host. So a host has a default route to the switch for its own packets; the switch rejects the rest.

The kernel removes both ends of a cable when the host's namespace goes, a moment after the host.
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
ROUTE_TABLE, RULE_PREFERENCE = 77, 33000
"""A routing table, and the preference of the rule that looks it up: after all others."""
LAST_RESORT_METRIC = 4_000_000_000
"""The metric of the unreachable default route: every other default route takes precedence."""
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
"""Of the network namespace of the calling thread."""
BRIDGE, CABLE = "br0", "eth0"
NAMED = Path("/run/netns")
"""Where iproute2 keeps named network namespaces."""
SECONDS = 10.0


def switch_path(name: str) -> Path:
    """The network namespace of a switch, for `enter`."""
    return NAMED / name


def make_switch(name: str) -> None:
    """Create the switch, or complete one that exists in part."""
    place = switch_path(name)
    if not _is_namespace(place):
        place.unlink(missing_ok=True)  # a crash, or a reboot with a persistent /run, leaves only the name
        run_ip("netns", "add", name)
    with enter(place):
        commands = ["link set lo up"]
        if BRIDGE not in interfaces():
            # A bridge without its own MAC address takes that of a port, and changes it as ports come and go.
            commands.append(f"link add {BRIDGE} address {_hardware_address(GATEWAY)} type bridge")
        commands += [f"address replace {GATEWAY}/{PREFIX} dev {BRIDGE}", f"link set {BRIDGE} up"]
        commands.append(f"route replace unreachable default metric {LAST_RESORT_METRIC}")
        batch(commands)
        FORWARDING.write_text("1")  # only a router rejects unroutable packets; its only routes are to its hosts


def remove_switch(name: str) -> None:
    """Remove the switch with every cable; idempotent."""
    if switch_path(name).exists():
        run_ip("netns", "delete", name)


@contextmanager
def enter(path: Path) -> Iterator[None]:
    """Move the calling thread into another network namespace, and back; sockets created inside stay there.

    Processes started inside are in it, too. Do not await inside: another task would run in that namespace.
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
    """The interface name of a host's cable in the switch; hashed, since interface names have at most 15 characters."""
    return f"p{hashlib.sha256(host.encode()).hexdigest()[:12]}"


def plug(switch: str, host: str, address: str) -> None:
    """Connect the network namespace of the calling thread to the switch by a veth pair."""
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
    # for packets of the host itself; unroutable packets of its pods are rejected by the host
    way = f"route add default via {GATEWAY} table {ROUTE_TABLE}"
    batch([*own, way, f"rule add iif lo lookup {ROUTE_TABLE} pref {RULE_PREFERENCE}"])


def cut(switch: str, host: str, *, down: bool) -> None:
    """Take a host's link down, or up again. The host gets no notice: packets just stop."""
    with enter(switch_path(switch)):
        if port(host) not in interfaces():
            raise TryLater(f"{host} has no cable in switch {switch}", hint="a host gets one when it starts")
        batch([f"link set {port(host)} {'down' if down else 'up'}"])


def _hardware_address(address: str) -> str:
    """A MAC address derived from the IP address, so that ARP caches stay valid when a later host gets the address."""
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
    """Run many commands in one `ip` process; the first failure ends it."""
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
