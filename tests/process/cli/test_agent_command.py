"""`protokube agent` before its first round: what it is told, and what is wrong with that."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from builders.command import process
from fakes.name_servers import LOOPBACK, ZONE, an_address, create, embedded
from protokube.cli.agent import serve_metrics
from protokube.providers import catalog
from protokube.store.memory import MemoryStore

STORE = MemoryStore("memory://agent")


def test_a_missing_file_is_said_in_words_and_no_traceback(tmp_path: Path) -> None:
    answer = process("agent", "--config", str(tmp_path / "none.json"))

    assert answer.code == 2
    assert "cannot read" in answer.err
    assert "Traceback" not in answer.err


def test_launch_data_of_before_that_have_the_key_itself_in_them_still_work(tmp_path: Path) -> None:
    with embedded() as server:
        key = {"name": server.key.name, "secret": server.key.secret}
        told = {"kind": "rfc2136", "server": LOOPBACK, "port": server.port, "zone": ZONE, "key": key}
        zone = catalog.names(told, tmp_path, STORE, "dev").provider
        assert zone is not None
        zone.apply(create(an_address("a")))

        assert list(zone.read([f"a.{ZONE}"])) == [an_address("a")]


def test_a_place_for_metrics_that_somebody_else_has_keeps_no_master_from_its_rounds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        assert serve_metrics(f"127.0.0.1:{held.getsockname()[1]}") is None
    assert "going on without metrics: cannot serve metrics at 127.0.0.1:" in caplog.text
