"""A network between machines of a test: a bridge in a namespace of its own, with no way to anywhere else."""

from __future__ import annotations

from itertools import count

from clusters.machines.keeper import Keeper


class Network:
    """One bridge. `keeper` is where a test runs what talks to the machines."""

    def __init__(self, address: str = "10.91.0.1/24") -> None:
        self._ports = count(1)
        setup = f"ip link add bridge type bridge; ip addr add {address} dev bridge; ip link set bridge up"
        self.keeper = Keeper(setup.replace("; ", "\n"))

    def connect(self, machine: Keeper, address: str, device: str = "eth0") -> None:
        """Give a machine a network card with an address, which stays when it reboots."""
        port = f"port{next(self._ports)}"
        self.keeper.run_here(
            "ip", "link", "add", port, "type", "veth", "peer", "name", device, "netns", str(machine.pid)
        )
        self.keeper.run("ip", "link", "set", port, "master", "bridge", "up")
        machine.run("ip", "addr", "add", address, "dev", device)
        machine.run("ip", "link", "set", device, "up")

    def cut(self, machine: Keeper, device: str = "eth0") -> None:
        """Take the network card away."""
        machine.run("ip", "link", "delete", device)

    def close(self) -> None:
        self.keeper.close()
