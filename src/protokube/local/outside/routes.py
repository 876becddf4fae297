"""The ways from the switch to pods, and the ways to the outside and back: in the switch, and in each host for its pods.

Pods ask the name server of the cloud, which lies at the switch, so its answers have to find them, also where there is
no way outside. The switch asks by ARP who has a pod's address, and the host of the pod answers (proxy ARP): it has not
to know which pod is where.

No address is translated. The process at the far end of the tap device takes each connection and makes one of its own
from the user's machine, so nothing has to be masqueraded, and what pods send to pods, hosts and Services is the same as
without a way out. What comes back finds its host in the same way: the switch answers that process for its hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from protokube.errors import InvalidRequest, Refused
from protokube.local.host import network
from protokube.local.host.network import BRIDGE, CABLE, ELSEWHERE, GATEWAY, LAST, PREFIX

TAP = "tap0"
TAP_NETWORK = IPv4Network("10.77.1.0/24")
NEAR, FAR = "10.77.1.1", "10.77.1.2"
"""The two ends of the tap device: the switch, and the process."""
HOSTS = IPv4Network(f"{GATEWAY}/{PREFIX}", strict=False)
NEVER = (TAP_NETWORK, IPv4Network("169.254.0.0/16"))
"""What no host may reach through the user's machine: link-local addresses are that machine's own, and where it runs in
a cloud, one of them hands out its credentials."""
MARK = 77
"""The protocol number of our routes in the switch, by which they are found again."""
FORWARDED = LAST + 1
"""The place of the rule for what a host forwards; the one before it is for what the host itself sends."""
SYSCTL = Path("/proc/sys/net/ipv4")
"""Of the network that the thread is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Ranges of addresses that are the cluster's own."""

    pods: tuple[IPv4Network, ...] = ()
    services: tuple[IPv4Network, ...] = ()

    @property
    def everything(self) -> tuple[IPv4Network, ...]:
        return (HOSTS, TAP_NETWORK, *self.pods, *self.services)


def read_ranges(texts: Sequence[str]) -> tuple[IPv4Network, ...]:
    """Ranges of IPv4; those of IPv6 are left out, since there is no way out for them."""
    try:
        return tuple(IPv4Network(text) for text in texts if ":" not in text)
    except (ValueError, TypeError) as wrong:
        raise InvalidRequest("not a range of addresses", saw=str(wrong), want="100.96.0.0/11") from wrong


def pod_commands(inside: Inside) -> list[str]:
    """For iproute2 in the switch: every pod is behind one of its hosts."""
    return [f"route replace {each} dev {BRIDGE} proto {MARK}" for each in inside.pods]


def outside_commands(inside: Inside) -> list[str]:
    """For iproute2 in the switch: outside is whatever is not the cluster's own."""
    refused = sorted({*NEVER, *inside.services})
    routes = [*(f"unreachable {each}" for each in refused), f"default via {FAR} dev {TAP}"]
    ends = [f"address replace {NEAR} peer {FAR}/32 dev {TAP}", f"link set {TAP} up"]
    return [*ends, *(f"route replace {each} proto {MARK}" for each in routes)]


def open_switch(switch: str, inside: Inside) -> None:
    """Lead to the tap device, which is there already."""
    with network.enter(network.switch_path(switch)):
        _answer_for_others(TAP)
        network.batch(outside_commands(inside))


def close_switch(switch: str, inside: Inside) -> None:
    """Lead to pods, and forget every way out; those through the tap device went with it."""
    with network.enter(network.switch_path(switch)):
        for each in ("all", BRIDGE):  # it would tell a host to look for pods on its own cable
            (SYSCTL / "conf" / each / "send_redirects").write_text("0")
        network.run_ip("route", "flush", "proto", str(MARK))
        network.batch(pod_commands(inside))


def open_host(pid: int) -> None:
    """Let what a host forwards for its pods go to the switch as well."""
    with network.enter(Path(f"/proc/{pid}/ns/net")):
        _answer_for_others(CABLE)
        _forget_rule()
        network.run_ip("rule", "add", "lookup", str(ELSEWHERE), "pref", str(FORWARDED))


def close_host(pid: int) -> None:
    """The host itself refuses what its pods send to nowhere."""
    with network.enter(Path(f"/proc/{pid}/ns/net")):
        _answer_for_others(CABLE)
        _forget_rule()


def _answer_for_others(device: str) -> None:
    (SYSCTL / "conf" / device / "proxy_arp").write_text("1")
    (SYSCTL / "neigh" / device / "proxy_delay").write_text("0")  # else up to 0.8 s, at random


def _forget_rule() -> None:
    with suppress(Refused):  # there is none
        network.run_ip("rule", "del", "pref", str(FORWARDED))
