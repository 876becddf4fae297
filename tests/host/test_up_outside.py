"""`protokube up` on a laptop with a network: hosts reach the outside or do not, as it is said, and `status` says so.

The laptop and the outside are network namespaces of the test.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence

import pytest

from builders.command import Answer
from clusters.real import RealCluster
from fakes.outside_world import LAPTOP, WEB_NAME, World, a_world
from protokube.local.host import leftovers

FETCH = f"import urllib.request; print(urllib.request.urlopen('http://{WEB_NAME}/', timeout=10).read().decode())"
NO_TUN = ("unshare", "--mount", "--propagation=unchanged", "sh", "-ec")
HIDE = 'mount --make-private /; mount --make-private /dev || true; mount -t tmpfs none /dev/net; exec "$@"'


class OnLaptop(RealCluster):
    """Every command of the user runs there."""

    def __init__(self, within: Sequence[str]) -> None:
        super().__init__()
        self.within = within

    def again(self, *words: str) -> Answer:
        """`up`, with nothing said in the environment."""
        said = self.run("up", "--cluster", self.name, "--kubernetes", "none", *words, PROTOKUBE_ISOLATED="")
        assert said.code == 0, said.err
        return said

    def fetched(self) -> str:
        """Who the server outside sees; empty if it was not reached."""
        (host,) = self.hosts()
        return self.inside(host["name"], "python3", "-I", "-c", FETCH).stdout.strip()


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as made:
        yield made


def test_a_new_cluster_has_a_way_outside_and_keeps_what_is_said_later(world: World) -> None:
    with OnLaptop(world.within) as cluster:
        cluster.again("--masters", "1", "--timeout", "180")
        assert cluster.fetched() == LAPTOP
        assert cluster.status()["outside"] == {"reached": True, "isolated": False, "why": ""}
        assert "\nhosts reach the outside\n" in cluster.run("status", "--cluster", cluster.name).out

        said = cluster.again("--isolated")
        assert "hosts are isolated" in said.err
        assert "warning" not in said.err
        seen = len(world.web.seen), len(world.names.seen)
        assert cluster.fetched() == ""
        assert (len(world.web.seen), len(world.names.seen)) == seen
        assert leftovers.outside_processes(cluster.paths) == []
        assert cluster.status()["outside"]["isolated"] is True
        assert "hosts do not reach the outside: it was asked for" in cluster.run("status").out

        assert "hosts are isolated" in cluster.again().err, "what nobody says now is as it was"
        cluster.again("--no-isolated")
        assert cluster.fetched() == LAPTOP
        assert "hosts reach the outside" in cluster.again().err


def test_on_a_machine_without_tun_up_goes_on_isolated_and_says_why_once(world: World) -> None:
    with OnLaptop([*world.within, *NO_TUN, HIDE, "sh"]) as cluster:
        said = cluster.again("--masters", "1", "--timeout", "180")
        assert said.err.count("warning: ") == 1
        assert "hosts do not reach the outside: this machine has no /dev/net/tun; `modprobe tun`" in said.err
        assert cluster.fetched() == ""
        outside = cluster.status()["outside"]
        assert (outside["reached"], outside["isolated"]) == (False, False)
        assert "this machine has no /dev/net/tun" in outside["why"]

        os.kill(cluster.status()["daemon"]["pid"], signal.SIGKILL)
        cluster.within = world.within
        cluster.again()
        assert cluster.fetched() == LAPTOP, "once there is tun, the next `up` uses it"
