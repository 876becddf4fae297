"""One look at a local cluster: what is ready, what is lacking, and what can be seen while parts are absent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.config import completed
from builders.view import (
    ShortFolder,
    a_view,
    an_agent,
    write_state,
)
from protokube.launch.derive import from_config
from protokube.local.bringup import launch_data
from protokube.local.view import sources
from protokube.view.values import AgentView


@pytest.fixture
def state() -> Iterator[Path]:
    with ShortFolder() as folder:
        yield folder


def undated(agent: AgentView) -> AgentView:
    """Without its age, which a busy machine makes greater."""
    return replace(agent, age=0.0)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"report": {}}', '{"at": "x", "round": 1}', "null"])
def test_a_status_file_that_is_half_written_or_not_ours_is_left_out(state: Path, text: str) -> None:
    paths = write_state(state, a_view())
    (paths.host("master-0") / "run/protokube/status.json").write_text(text)

    assert sources.agent_view(paths, "master-0") is None
    other = sources.agent_view(paths, "master-1")
    assert other is not None
    assert undated(other) == undated(an_agent(1))


def test_connections_that_stand_to_peer_ports_are_read_from_a_hosts_own_network(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    rows = ["0B004D0A:9C40 0C004D0A:094C 01", "0B004D0A:9C41 0D004D0A:094C 06", "0B004D0A:9C42 0D004D0A:0FA1 01"]
    table.write_text("  sl  local_address rem_address st\n" + "".join(f"   0: {each} 00000000\n" for each in rows))

    assert sources.connected(table, [2380]) == ("10.77.0.12",)
    assert sources.connected(table, [2380, 4001]) == ("10.77.0.12", "10.77.0.13")
    assert sources.connected(tmp_path / "gone", [2380]) == ()


def test_what_the_masters_are_told_is_read_from_whichever_host_has_it(state: Path) -> None:
    wanted = from_config(completed(cloud="local", masters=3))
    paths = write_state(state, a_view())
    for host, text in (("master-0", "{half"), ("master-1", launch_data(wanted, "dev.local"))):
        file = paths.host(host) / "etc/protokube/agent.json"
        file.parent.mkdir(parents=True)
        file.write_text(text)

    assert sources.master_config(paths, ["master-0", "master-1", "master-2"]) == wanted
    assert sources.master_config(paths, ["master-0"]) is None
