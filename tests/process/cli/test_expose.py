"""`protokube expose`: what it asks of the API and of the daemon, and what it refuses before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from builders.command import Answer, process
from builders.local_state import LocalState
from builders.view import FakeCloud, ShortFolder, a_view, cloud_rows
from fakes.kube_server import KubeServer, kube_server
from protokube.cli.shared.progress import Progress
from protokube.cli.up.exposing import expose_all, read_exposed
from protokube.errors import ExitCode
from protokube.local.view import sources
from protokube.providers.clients.local import LocalClient
from protokube.view.values import ExposedView

WEB = ExposedView(address="127.0.0.1", local_port=8080, namespace="default", service="web", port="80", listening=True)
SHOP = ExposedView(
    address="127.0.0.1",
    local_port=9000,
    namespace="shop",
    service="web",
    port="http",
    listening=False,
    why="it is in use",
)


class Scene:
    """One cluster with an API server and a daemon, both of them the far side."""

    def __init__(self, folder: Path, server: KubeServer) -> None:
        self.state, self.server = LocalState(folder), server
        client = self.state.paths.client
        client.mkdir()
        for name, source in (
            ("kubernetes-ca.crt", "ca.crt"),
            ("kubernetes.crt", "client.crt"),
            ("kubernetes.key", "client.key"),
        ):
            shutil.copy(server.pki / source, client / name)
        (client / "api-server").write_text(f"{server.url}\n")
        for namespace, name, ports in (
            ("default", "web", [{"name": "http", "port": 80, "protocol": "TCP"}]),
            ("shop", "web", [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}]),
        ):
            self.put(f"/api/v1/namespaces/{namespace}", "Namespace", namespace)
            place = f"/api/v1/namespaces/{namespace}/services/{name}"
            self.put(place, "Service", name, namespace, spec={"ports": ports})
            place = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}-1"
            self.put(place, "EndpointSlice", f"{name}-1", namespace, addressType="IPv4")
        rows = [asdict(each) for each in (WEB, SHOP)]
        answers = {"about": {"exposed": rows}, "expose": self.expose, "unexpose": True}
        self.cloud = FakeCloud(self.state.paths.admin_socket, {**cloud_rows(a_view()), **answers})

    def put(self, place: str, kind: str, name: str, namespace: str = "", **fields: Any) -> None:
        about = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.server.kube.apply(place, {"apiVersion": "v1", "kind": kind, "metadata": about, **fields}, manager="test")

    def expose(self, told: dict[str, Any]) -> dict[str, Any]:
        service, _, port = told["service"].partition(":")
        namespace, _, name = service.partition("/")
        local = told["local_port"] or 8000 + told["prefer"]
        return {"address": told["address"], "local_port": local, "namespace": namespace, "service": name, "port": port}

    def run(self, *words: str) -> Answer:
        return process("expose", *words, env={"PROTOKUBE_STATE": str(self.state.paths.root.parent)})

    def changes(self) -> list[dict[str, Any]]:
        return [each for each in self.cloud.asked if each["call"] in ("expose", "unexpose")]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ShortFolder() as folder, kube_server(tmp_path) as server:
        made = Scene(folder, server)
        with made.cloud:
            yield made


def test_a_service_is_exposed_with_its_namespace_and_its_only_port(scene: Scene) -> None:
    answer = scene.run("web")

    assert (answer.code, answer.out) == (ExitCode.OK, "127.0.0.1:8080 leads to default/web:80\n")
    assert answer.err == "no pod behind default/web:80 is ready yet; connections are closed until one is\n"
    assert scene.changes() == [
        {"call": "expose", "service": "default/web:80", "address": "127.0.0.1", "local_port": None, "prefer": 80}
    ]


def test_options_may_stand_anywhere_and_the_result_is_data_if_asked_for(scene: Scene) -> None:
    spellings = (
        ("--port", "9000", "shop/web:http", "-o", "json"),
        ("add", "shop/web:http", "--port=9000", "-ojson"),
        ("shop/web:http", "--output", "json", "--address", "localhost", "--port", "9000"),
    )
    for words in spellings:
        answer = scene.run(*words)

        assert json.loads(answer.out) == {
            "address": "127.0.0.1", "localPort": 9000, "namespace": "shop", "service": "web", "port": "http",
            "listening": True, "why": "",
        }, answer.err  # fmt: skip


def test_an_address_that_others_reach_is_warned_of(scene: Scene) -> None:
    assert scene.run("web", "--address", "0.0.0.0").err.startswith("warning: whoever reaches 0.0.0.0 can connect\n")


def test_up_warns_of_such_an_address_too(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [read_exposed("8080:web:80"), read_exposed("0.0.0.0:9000:web:80")]

    expose_all(Progress(quiet=True), LocalClient(scene.state.paths.admin_socket), wanted)

    assert capsys.readouterr().err == "warning: whoever reaches 0.0.0.0 can connect\n"


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("wbe",), "not-found", "did you mean `web`?"),
        (("shp/web",), "not-found", "did you mean `shop`?"),
        (("shop/web",), "invalid-request", "shop/web:80"),
        (("shop/web:metric",), "not-found", "did you mean `metrics`?"),
        (("Web!",), "invalid-request", ""),
        (("web", "--address", "here"), "invalid-request", ""),
        (("web", "--port", "0"), "usage", "protokube expose add --help"),
        (("web", "--port", "70000"), "usage", "protokube expose add --help"),
        (("remove", "8081"), "not-found", "did you mean `8080`?"),
        (("remove", "db"), "not-found", "protokube expose list"),
        (("add",), "usage", "protokube expose add --help"),
    ],
)
def test_a_wrong_call_is_one_error_and_opens_nothing(
    scene: Scene, words: tuple[str, ...], code: str, hint: str
) -> None:
    answer = scene.run(*words, "-o", "json")
    told = json.loads(answer.err)

    assert (answer.code, answer.out, told["code"], told.get("hint", "")) == (ExitCode.INVALID, "", code, hint)
    assert scene.changes() == []


def test_a_cluster_without_kubernetes_has_no_services(scene: Scene) -> None:
    (scene.state.paths.client / "api-server").unlink()
    answer = scene.run("web", "-o", "json")

    assert (answer.code, json.loads(answer.err)["code"]) == (ExitCode.REFUSED, "needs-kubernetes")


def test_ports_are_listed_and_removed_by_their_number_or_by_their_service(scene: Scene) -> None:
    assert [line.split(maxsplit=2) for line in scene.run("list").out.splitlines()] == [
        ["PORT", "SERVICE", "STATE"],
        ["127.0.0.1:8080", "default/web:80", "open"],
        ["127.0.0.1:9000", "shop/web:http", "not open: it is in use"],
    ]
    assert [each["localPort"] for each in json.loads(scene.run("list", "-o", "json").out)] == [8080, 9000]
    for what, port in (("9000", 9000), ("shop/web", 9000), ("shop/web:http", 9000), ("web", 8080)):
        assert scene.run("remove", what).out == f"127.0.0.1:{port} is closed\n"
        assert scene.changes()[-1] == {"call": "unexpose", "address": "127.0.0.1", "local_port": port}


def test_a_look_shows_them_also_while_no_daemon_runs(scene: Scene) -> None:
    paths = scene.state.paths
    scene.state.exposed(8080, "web")
    with ThreadPoolExecutor() as pool:
        assert sources.inventory(paths, LocalClient(paths.admin_socket), pool).exposed == (WEB, SHOP)
        paths.admin_socket.unlink()
        (found,) = sources.inventory(paths, LocalClient(paths.admin_socket, patience=0.1), pool).exposed
    assert (found.here, found.state) == ("127.0.0.1:8080", "not open: the local cloud does not run")
