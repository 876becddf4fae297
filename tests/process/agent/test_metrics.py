"""What a monitoring system reads of an agent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from clusters.scenario.cluster import Stage
from clusters.scenario.host import tmpfs
from protokube.agent.metrics import serve
from protokube.errors import InvalidRequest, Refused


@pytest.fixture
def stage() -> Iterator[Stage]:
    with tmpfs() as folder:
        yield Stage(folder)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def test_rounds_waits_epochs_and_the_office_are_told(stage: Stage) -> None:
    stage.boot_all()
    stage.until(stage.healthy)
    stage.run(15)
    host = next(each for each in stage.hosts.values() if each.presence.elected())
    port = free_port()
    served = serve(f"127.0.0.1:{port}")
    stage.cloud.down = True
    for _ in range(2):
        round_ = stage.round(host)
        assert round_ is not None
        served.after(round_, 0.002)
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    assert "protokube_rounds_total 2.0" in text
    assert 'protokube_waiting{step="fence"} 1.0' in text
    assert "protokube_elected 1.0" in text
    stage.cloud.down = False
    round_ = stage.round(host)
    assert round_ is not None
    served.after(round_, 0.002)
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    member = stage.volume_of("a")
    assert f'protokube_volume_epoch{{member="main/a",volume="{member}"}} 1.0' in text
    assert "protokube_waiting{" not in text
    served.close()


@pytest.mark.parametrize("address", ["3990", "localhost", "host:port", ":", "127.0.0.1:99999", "127.0.0.1:²"])
def test_an_address_that_is_none_is_an_error_in_words(address: str) -> None:
    with pytest.raises(InvalidRequest, match="is no address for metrics"):
        serve(address)


def test_a_place_that_is_taken_is_told_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held, pytest.raises(Refused, match="Address already in use"):
        serve(f"127.0.0.1:{held.getsockname()[1]}")
