"""Three masters that are nodes: a pod of one reaches the pods of the others by the routes that our agents made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.kubelet import KubeletCluster
from clusters.real import until
from e2e.pods import fetched, one_on_each, web_process


@pytest.fixture
def cluster() -> Iterator[KubeletCluster]:
    with KubeletCluster() as made:
        yield made.up_with_kubelet(masters=3)


def await_answer(pid: int, address: str, name: str) -> None:
    until(lambda: fetched(pid, f"http://{address}/hostname") == name, f"{name} answers at {address}")


def test_pods_of_all_nodes_reach_each_other(cluster: KubeletCluster) -> None:
    hosts = [str(each["name"]) for each in cluster.hosts()]
    reached = one_on_each(cluster)
    assert len({address.rpartition(".")[0] for address in reached.values()}) == len(hosts)
    for host in hosts:
        own = web_process(cluster, host)
        for name, address in reached.items():
            await_answer(own, address, name)
