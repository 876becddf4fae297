"""Single objects over a real wire: only a 404 from our own cluster means that an object is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from builders.dns_objects import a_node, a_pod, a_service, a_source, an_ingress
from fakes.watch_server import WatchServer, session_with, watch_server
from protokube.controllers.dns.read.fresh import API_SERVERS, ORIGIN, FreshObjects, cluster_id
from protokube.errors import TryLater

US = {"metadata": {"uid": "our-cluster"}}
GONE = {"reason": "NotFound", "message": 'pods "web" not found'}


@contextmanager
def answering(folder: Path, *answers: tuple[int, Any]) -> Iterator[tuple[FreshObjects, WatchServer]]:
    with watch_server() as server, session_with(server, folder) as session:
        for status, tree in answers:
            body = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
            server.scripted.append((status, {}, body))
        yield FreshObjects(session, "our-cluster"), server


@pytest.mark.parametrize(
    ("document", "key", "path"),
    [
        (a_pod(internal_names="a.dev"), "pod/default/web", "/api/v1/namespaces/default/pods/web"),
        (a_service(external_names="a.dev"), "service/default/web", "/api/v1/namespaces/default/services/web"),
        (
            an_ingress("web", ["a.dev"]),
            "ingress/default/web",
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses/web",
        ),
        (a_node("n1", internal_names="a.dev"), "node/n1", "/api/v1/nodes/n1"),
    ],
    ids=["pod", "service", "ingress", "node"],
)
def test_an_object_is_asked_for_where_it_is(document: Any, key: str, path: str, tmp_path: Path) -> None:
    with answering(tmp_path, (200, US), (200, document)) as (fresh, server):
        assert fresh.source(key) == a_source(document)
        assert [each[1] for each in server.seen] == [ORIGIN, path]


def test_the_cluster_is_asked_who_it_is_once(tmp_path: Path) -> None:
    with answering(tmp_path, (200, US), (404, GONE), (404, GONE)) as (fresh, server):
        assert fresh.source("pod/default/web") is None
        assert fresh.node("n1") is None
        assert len(server.seen) == 3


def endpoints(*addresses: str) -> dict[str, Any]:
    return {"metadata": {"name": "kubernetes"}, "subsets": [{"addresses": [{"ip": each} for each in addresses]}]}


@pytest.mark.parametrize(("address", "there"), [("10.0.0.1", True), ("10.0.0.3", False), ("2001:db8::1", True)])
def test_the_api_servers_say_themselves_where_they_are(address: str, there: bool, tmp_path: Path) -> None:
    document = endpoints("10.0.0.1", "10.0.0.2", "2001:DB8:0::1")
    with answering(tmp_path, (200, US), (200, document)) as (fresh, server):
        assert fresh.serves(address) == there
        assert [each[1] for each in server.seen] == [ORIGIN, API_SERVERS]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((404, GONE), id="nobody keeps it up"),
        pytest.param((200, endpoints()), id="it is empty"),
        pytest.param((200, {"metadata": {"name": "kubernetes"}}), id="it says nothing"),
        pytest.param((200, endpoints("2001:db8::1")), id="it knows another family only"),
        pytest.param((403, {"reason": "Forbidden", "message": "no"}), id="it may not be read"),
    ],
)
def test_nothing_is_said_of_where_the_api_servers_are_if(answer: tuple[int, Any], tmp_path: Path) -> None:
    with answering(tmp_path, (200, US), answer) as (fresh, _), pytest.raises(TryLater):
        fresh.serves("10.0.0.1")


def a_page(*documents: Any, more: str = "") -> dict[str, Any]:
    return {"metadata": {"continue": more}, "items": list(documents)}


SERVER = a_pod("kube-apiserver-n2", addresses=["10.0.0.2"], node="n2", internal_names="api.dev")


@pytest.mark.parametrize(
    ("address", "who"),
    [("10.0.0.1", "node/n1"), ("10.0.0.9", "node/n9"), ("10.0.0.2", "pod/default/kube-apiserver-n2"), ("10.0.0.3", "")],
)
def test_who_has_an_address_is_listed_anew_page_after_page(address: str, who: str, tmp_path: Path) -> None:
    nodes = [a_page(a_node("n1", internal=["10.0.0.1"]), more="x"), a_page(a_node("n9", external=["10.0.0.9"]))]
    pods = a_page(a_pod("web", addresses=["10.0.0.3"], internal_names="other.dev"), SERVER)
    with answering(tmp_path, (200, US), *((200, each) for each in (*nodes, pods))) as (fresh, server):
        assert fresh.who_has("api.dev", address) == who
        before = len(server.seen)
        assert fresh.who_has("api.dev", address) == who
        assert len(server.seen) == before, "once in a round"


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([(404, GONE)], id="there is no such list"),
        pytest.param([(200, a_page(more="x")), (500, {"message": "etcd"})], id="the second page fails"),
        pytest.param([(200, a_page({"metadata": {"name": 7}}))], id="an object cannot be read"),
        pytest.param([(200, b"{}")], id="it is no list"),
    ],
)
def test_nothing_is_said_of_who_has_an_address_if(answers: list[tuple[int, Any]], tmp_path: Path) -> None:
    with answering(tmp_path, (200, US), *answers) as (fresh, _), pytest.raises(TryLater):
        fresh.who_has("api.dev", "10.0.0.1")


def test_an_object_that_asks_for_nothing_is_as_good_as_none(tmp_path: Path) -> None:
    with answering(tmp_path, (200, US), (200, a_pod())) as (fresh, _):
        assert fresh.source("pod/default/web") is None


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([(200, {"metadata": {"uid": "another"}}), (404, GONE)], id="another cluster"),
        pytest.param([(404, GONE)], id="a server without kube-system"),
        pytest.param([(200, US), (404, {"message": "404 page not found"})], id="a server that does not know the kind"),
        pytest.param([(200, US), (404, b"<html>")], id="a proxy in between"),
        pytest.param([(200, US), (403, {"reason": "Forbidden", "message": "no"})], id="a server that refuses"),
        pytest.param([(200, US), (500, {"message": "etcd"})], id="a server in trouble"),
        pytest.param([(200, US), (200, b"{}")], id="an object without a name"),
        pytest.param([(200, US), (200, b'{"metadata": {"name": "web", "annotations": 7}}')], id="an odd object"),
        pytest.param([(200, b"no tree")], id="an answer that is none"),
    ],
)
def test_nothing_is_said_of_an_object_by(answers: list[tuple[int, Any]], tmp_path: Path) -> None:
    with answering(tmp_path, *answers) as (fresh, _), pytest.raises(TryLater):
        fresh.source("pod/default/web")


@pytest.mark.parametrize("key", ["adopted", "pod/default", "pod", "", "deployment/default/web"])
def test_a_mark_that_names_no_object_is_no_reason_to_let_a_value_go(key: str, tmp_path: Path) -> None:
    with answering(tmp_path, (200, US)) as (fresh, server):
        with pytest.raises(TryLater, match="no object that we know of"):
            fresh.source(key)
        assert server.seen == []


def test_a_server_that_does_not_answer_is_asked_once_in_a_round(tmp_path: Path) -> None:
    with answering(tmp_path) as (fresh, server):
        server.faults.extend(["cut"] * 10)
        for _ in range(3):
            with pytest.raises(TryLater, match="does not answer"):
                fresh.source("pod/default/web")
        assert len(server.seen) == 2  # a request on a closed connection is retried


def test_a_cluster_is_known_by_its_oldest_namespace(tmp_path: Path) -> None:
    with watch_server() as server, session_with(server, tmp_path) as session:
        server.scripted.append((200, {}, json.dumps(US).encode()))
        assert cluster_id(session) == "our-cluster"
