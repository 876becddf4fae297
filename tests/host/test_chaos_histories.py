"""The clients and checkers of the chaos soak on a real cluster: they believe a healthy one, and see a split brain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

from clusters.real import RealCluster, until
from host.test_split_brain import plant
from soak.chaos.clients import KEYS, Clients
from soak.chaos.history import Operation, Result, by_key
from soak.chaos.linear import NotLinearizable, Register
from soak.chaos.revisions import Revisions


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


class Checkers:
    """Everything that the histories are checked for, part by part."""

    def __init__(self) -> None:
        self.registers, self.revisions = dict.fromkeys(KEYS, Register()), Revisions()

    def wrong(self, part: list[Operation]) -> list[str]:
        found = [different] if (different := self.revisions.feed(part)) else []
        for key, operations in by_key(part).items():
            verdict = self.registers[key].feed(operations)
            if isinstance(verdict, NotLinearizable):
                found.append(str(verdict))
            else:
                self.registers[key] = verdict
        return found


def replies(part: Iterable[Operation]) -> Counter[str]:
    """How many calls got one, by member."""
    return Counter(each.client.rpartition(".")[0] for each in part if each.result is Result.OK)


def called(clients: Clients, enough: int, *, through: Collection[str] = ()) -> list[Operation]:
    """A part of the history with at least so many replies, some through each of these members; then all is read."""
    found: list[Operation] = []

    def look() -> bool:
        found.extend(clients.take())
        counted = replies(found)
        return counted.total() >= enough and set(through) <= counted.keys()

    clients.resume()
    until(look, f"{enough} calls with a reply, and some through each of {sorted(through)}")
    clients.pause()
    clients.read_everything()
    return [*found, *clients.take()]


def test_a_master_that_dies_leaves_a_history_with_an_explanation_and_a_split_brain_does_not(
    cluster: RealCluster, tmp_path: Path
) -> None:
    checkers = Checkers()
    with Clients(cluster.endpoints, cluster.tls, seed=1) as clients:
        assert checkers.wrong(called(clients, 200)) == []

        cluster.admin.call("kill_host", host=cluster.host_of("c"))  # the others keep their whole log; see `plant`
        assert checkers.wrong(called(clients, 200)) == []

        cluster.until_ready()
        plant(cluster, "c", tmp_path)
        until(lambda: len(cluster.healthy()) == 3, "all healthy, and one of them wrong")
        part = called(clients, 200, through=cluster.endpoints)
        wrong = checkers.wrong(part)

    # through the wrong member, too: a machine under load takes its time to let the clients in again
    assert any("the members hold different histories" in each for each in wrong), (replies(part), wrong)
