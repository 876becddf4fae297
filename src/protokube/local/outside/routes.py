"""Routes from the switch to pods, and outbound routes: in the switch, and in each host for its pods.

Pods query the name server of the cloud, which runs at the switch, so its replies need a route to pods, even in an
isolated cloud. The switch sends an ARP request for the address of a pod, and the host of the pod answers it (proxy
ARP), so the switch need not know which host runs which pod.

No NAT is needed: slirp4netns, at the far end of the tap device, terminates each connection and opens its own from the
user's machine. So traffic between pods, hosts and Services is the same as in an isolated cloud. Replies find their
host in the same way: the switch answers ARP requests of slirp4netns for its hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from protokube.errors import InvalidRequest, Refused
from protokube.local.host import network
from protokube.local.host.network import BRIDGE, CABLE, GATEWAY, PREFIX, ROUTE_TABLE, RULE_PREFERENCE

TAP = "tap0"
TAP_NETWORK = IPv4Network("10.77.1.0/24")
NEAR, FAR = "10.77.1.1", "10.77.1.2"
"""The two ends of the tap device: the switch, and the process."""
HOSTS = IPv4Network(f"{GATEWAY}/{PREFIX}", strict=False)
NEVER = (TAP_NETWORK, IPv4Network("169.254.0.0/16"))
"""What no host may reach through the user's machine: link-local addresses belong to that machine, and in a cloud one of
them is the metadata service, which hands out credentials."""
MARK = 77
"""The protocol number that identifies our routes in the switch."""
FORWARDED = RULE_PREFERENCE + 1
"""Preference of the rule for packets that a host forwards; the rule before it is for the host's own packets."""
SYSCTL = Path("/proc/sys/net/ipv4")
"""Of the network namespace of the calling thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Address ranges of the cluster itself."""

    pods: tuple[IPv4Network, ...] = ()
    services: tuple[IPv4Network, ...] = ()

    @property
    def everything(self) -> tuple[IPv4Network, ...]:
        return (HOSTS, TAP_NETWORK, *self.pods, *self.services)


def read_ranges(texts: Sequence[str]) -> tuple[IPv4Network, ...]:
    """Parse IPv4 ranges; IPv6 ranges are skipped, since there is no outbound route for them."""
    try:
        return tuple(IPv4Network(text) for text in texts if ":" not in text)
    except (ValueError, TypeError) as wrong:
        raise InvalidRequest("not a range of addresses", saw=str(wrong), want="100.96.0.0/11") from wrong


def pod_commands(inside: Inside) -> list[str]:
    """`ip` commands for the switch: every pod is behind one of its hosts."""
    return [f"route replace {each} dev {BRIDGE} proto {MARK}" for each in inside.pods]


def outside_commands(inside: Inside) -> list[str]:
    """`ip` commands for the switch: everything outside of the cluster's ranges goes to the tap device."""
    refused = sorted({*NEVER, *inside.services})
    routes = [*(f"unreachable {each}" for each in refused), f"default via {FAR} dev {TAP}"]
    ends = [f"address replace {NEAR} peer {FAR}/32 dev {TAP}", f"link set {TAP} up"]
    return [*ends, *(f"route replace {each} proto {MARK}" for each in routes)]


def open_switch(switch: str, inside: Inside) -> None:
    """Route outbound traffic to the tap device, which exists already."""
    with network.enter(network.switch_path(switch)):
        _answer_for_others(TAP)
        network.batch(outside_commands(inside))


def close_switch(switch: str, inside: Inside) -> None:
    """Route to pods, and remove outbound routes; those through the tap device went with the device."""
    with network.enter(network.switch_path(switch)):
        for each in ("all", BRIDGE):  # an ICMP redirect would make a host look for pods on its own link
            (SYSCTL / "conf" / each / "send_redirects").write_text("0")
        network.run_ip("route", "flush", "proto", str(MARK))
        network.batch(pod_commands(inside))


def open_host(pid: int) -> None:
    """Route packets that a host forwards for its pods to the switch."""
    with network.enter(Path(f"/proc/{pid}/ns/net")):
        _answer_for_others(CABLE)
        _forget_rule()
        network.run_ip("rule", "add", "lookup", str(ROUTE_TABLE), "pref", str(FORWARDED))


def close_host(pid: int) -> None:
    """Have the host itself reject outbound packets of its pods."""
    with network.enter(Path(f"/proc/{pid}/ns/net")):
        _answer_for_others(CABLE)
        _forget_rule()


def _answer_for_others(device: str) -> None:
    (SYSCTL / "conf" / device / "proxy_arp").write_text("1")
    (SYSCTL / "neigh" / device / "proxy_delay").write_text("0")  # else up to 0.8 s, at random


def _forget_rule() -> None:
    with suppress(Refused):  # there is none
        network.run_ip("rule", "del", "pref", str(FORWARDED))
