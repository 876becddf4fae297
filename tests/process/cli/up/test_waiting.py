"""What `up` and `start` wait for, against an API server and a daemon of the far side, and how Ctrl-C ends that."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.local_state import LocalState
from builders.view import FakeCloud, ShortFolder
from fakes.kube_server import KubeServer, kube_server
from protokube.cli.shared.progress import Progress
from protokube.cli.up.waiting import await_nodes, going_on
from protokube.errors import TryLater
from protokube.local.base.paths import Paths
from protokube.providers.clients.local import LocalClient

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


class Scene:
    """A cluster whose daemon has these hosts, and whose API server has these nodes."""

    def __init__(self, state: LocalState, server: KubeServer) -> None:
        self.paths, self.server = state.paths, server
        self.hosts: list[dict[str, Any]] = []
        self.cloud = FakeCloud(self.paths.admin_socket, {"hosts": lambda _: self.hosts})
        self.paths.client.mkdir()
        for name, source in (("-ca.crt", "ca.crt"), (".crt", "client.crt"), (".key", "client.key")):
            shutil.copy(server.pki / source, self.paths.client / f"kubernetes{name}")
        (self.paths.client / "api-server").write_text(f"{server.url}\n")

    def host(self, name: str, *, running: bool = True, dead: bool = False) -> None:
        self.hosts.append({"name": name, "running": running, "dead": dead})

    def node(self, name: str) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": READY}
        self.server.kube.apply(f"/api/v1/nodes/{name}", node, manager="test")

    def ready(self, at_least: int) -> int:
        admin = LocalClient(self.paths.admin_socket, patience=5)
        return await_nodes(Progress(quiet=True), self.paths, admin, 0.5, at_least=at_least)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ShortFolder() as folder, kube_server(tmp_path) as server:
        made = Scene(LocalState(folder), server)
        with made.cloud:
            yield made


def test_a_node_of_a_host_that_is_gone_is_not_counted_as_ready(scene: Scene) -> None:
    for name in ("one", "two", "gone"):
        scene.node(name)
    scene.host("one")
    scene.host("two")
    scene.host("gone", running=False, dead=True)
    scene.host("new")
    with pytest.raises(TryLater, match="not all nodes are ready") as late:
        scene.ready(3)
    assert late.value.saw == "2 of 3 nodes ready"

    scene.node("new")
    assert scene.ready(3) == 3


def test_a_host_that_is_yet_to_be_made_is_waited_for(scene: Scene) -> None:
    for name in ("one", "two"):
        scene.node(name)
        scene.host(name)
    assert scene.ready(2) == 2
    with pytest.raises(TryLater) as late:
        scene.ready(3)
    assert late.value.saw == "2 of 3 nodes ready"


def test_ctrl_c_says_that_the_cluster_goes_on_coming_up(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), going_on(Progress(), Paths.of("second")):
        raise KeyboardInterrupt
    said = capsys.readouterr().err
    assert "second goes on coming up by itself: `protokube status --wait --cluster second` waits for it" in said
