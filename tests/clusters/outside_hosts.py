"""What hosts of a local cloud, and pods in them, reach of the outside that a test has made."""

from __future__ import annotations

import socket
from typing import Any

from clusters.daemon import RealCloud
from fakes.outside_world import WEB, WEB_NAME
from protokube.local.host import network

FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
ADDRESSES = "import socket, sys; print(*socket.gethostbyname_ex(sys.argv[1])[2])"
ASK_BY_UDP = """
import socket, sys
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(10)
asking.sendto(bytes.fromhex(sys.argv[2]), (sys.argv[1], 53))
print(asking.recv(1000).hex())
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
except OSError as why:
    print(why.strerror)
"""


def run(cloud: RealCloud, host: dict[str, Any], code: str, *arguments: str) -> str:
    ran = cloud.inside(host, "python3", "-I", "-c", code, *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def fetch(cloud: RealCloud, host: dict[str, Any], url: str = f"http://{WEB_NAME}/") -> str:
    """The address that the server outside sees; an error fails the test."""
    return run(cloud, host, FETCH, url)


def error_of_connecting(cloud: RealCloud, host: dict[str, Any], address: str, port: int) -> str:
    return run(cloud, host, CONNECT, address, str(port))


def interfaces(switch: str) -> set[str]:
    with network.enter(network.switch_path(switch)):
        return {name for _, name in socket.if_nameindex()}


def a_pod(cloud: RealCloud, host: dict[str, Any], number: int) -> None:
    """As the bridge plugin makes it: a network of its own on a bridge of the host, with an address of its range."""
    script = f"""
        echo 1 > /proc/sys/net/ipv4/ip_forward
        ip link add pods0 type bridge
        ip address add 100.96.{number}.1/24 dev pods0
        ip link set pods0 up
        ip netns add pod
        ip link add pod0 type veth peer name eth0 netns pod
        ip link set pod0 master pods0 up
        ip -n pod address add 100.96.{number}.5/24 dev eth0
        ip -n pod link set eth0 up
        ip -n pod route add default via 100.96.{number}.1
    """
    made = cloud.inside(host, "sh", "-ec", script)
    assert made.returncode == 0, made.stderr


def fetch_from_pod(cloud: RealCloud, host: dict[str, Any]) -> str:
    ran = cloud.inside(host, "nsenter", "--net=/run/netns/pod", "python3", "-I", "-c", FETCH, f"http://{WEB}/")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()
