"""One API server over real TLS: responses, errors, timeouts, and connections that the server closed."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.addons import an_object
from fakes.kube_server import KubeServer, kube_server
from protokube.errors import TryLater
from protokube.kube.client import ApiError, KubeApi

ONE = "/api/v1/namespaces/kube-system/configmaps/one"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KubeServer]:
    with kube_server(tmp_path) as found:
        yield found


@pytest.fixture
def api(server: KubeServer) -> Iterator[KubeApi]:
    pki = server.pki
    found = KubeApi(server.url, ca=pki / "ca.crt", certificate=pki / "client.crt", key=pki / "client.key")
    yield found
    found.close()


def test_an_object_is_applied_read_merged_and_deleted(api: KubeApi, server: KubeServer) -> None:
    api.apply(ONE, an_object("one", data={"a": "b"}), manager="protokube")
    assert api.get(ONE)["data"] == {"a": "b"}
    api.merge(ONE, {"metadata": {"labels": {"x": "y"}}})
    assert api.get(ONE)["metadata"]["labels"] == {"x": "y"}
    api.delete(ONE, uid=api.get(ONE)["metadata"]["uid"])

    assert server.kube.objects == {}
    applied = server.seen[0]
    assert applied[1] == f"{ONE}?fieldManager=protokube&force=true"
    assert applied[2]["Content-Type"] == "application/apply-patch+yaml"


def test_a_refusal_says_what_was_asked_and_why_not(api: KubeApi) -> None:
    with pytest.raises(ApiError) as caught:
        api.get(ONE)

    assert (caught.value.status, caught.value.reason) == (404, "NotFound")
    assert ONE in caught.value.message


def test_an_object_that_is_there_is_not_created_again_and_that_is_no_reason_to_wait(api: KubeApi) -> None:
    folder = ONE.rpartition("/")[0]
    api.create(folder, an_object("one"))

    with pytest.raises(ApiError) as caught:
        api.create(folder, an_object("one"))

    assert caught.value.reason == "AlreadyExists"


def test_what_somebody_else_changed_meanwhile_is_to_be_read_again(api: KubeApi) -> None:
    api.apply(ONE, an_object("one"), manager="protokube")

    with pytest.raises(TryLater, match="changed by somebody else"):
        api.merge(ONE, {"metadata": {"resourceVersion": "0"}})


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_a_server_that_is_not_able_to_is_asked_later(api: KubeApi, server: KubeServer, status: int) -> None:
    server.answers.append((status, b"not json"))

    with pytest.raises(TryLater, match="not json"):
        api.get(ONE)


def test_a_connection_that_was_given_up_meanwhile_is_made_anew(api: KubeApi, server: KubeServer) -> None:
    api.apply(ONE, an_object("one"), manager="protokube")
    server.hang_up = 1

    assert api.merge(ONE, {"metadata": {"labels": {"x": "y"}}})["metadata"]["labels"] == {"x": "y"}


def test_what_must_not_be_done_twice_is_not_sent_twice(api: KubeApi, server: KubeServer) -> None:
    api.apply(ONE, an_object("one"), manager="protokube")
    server.hang_up = 1

    with pytest.raises(TryLater, match="does not answer"):
        api.create(ONE.rpartition("/")[0], an_object("two"))

    assert [method for method, *_ in server.seen] == ["PATCH", "POST"]


def test_silence_is_not_asked_twice(server: KubeServer) -> None:
    pki = server.pki
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        api = KubeApi(url, ca=pki / "ca.crt", certificate=pki / "client.crt", key=pki / "client.key", patience=0.2)
        with pytest.raises(TryLater, match="does not answer"):
            api.get(ONE)


def test_a_token_says_who_asks(server: KubeServer) -> None:
    api = KubeApi(server.url, ca=server.pki / "ca.crt", token="abcdef.0123456789abcdef")
    server.answers.append((200, b"{}"))

    api.get(ONE)
    api.close()

    assert server.seen[0][2]["Authorization"] == "Bearer abcdef.0123456789abcdef"


def test_whom_it_does_not_trust_it_tells_nothing(server: KubeServer, tmp_path: Path) -> None:
    with kube_server(tmp_path / "other") as other:
        api = KubeApi(server.url, ca=other.pki / "ca.crt", token="secret")
        with pytest.raises(TryLater, match="certificate verify failed"):
            api.get(ONE)

    assert server.seen == []


def test_a_renewed_certificate_is_used_at_once(api: KubeApi, server: KubeServer) -> None:
    server.answers += [(200, json.dumps({"n": n}).encode()) for n in range(2)]
    assert api.get(ONE) == {"n": 0}
    (server.pki / "client.key").write_text("no key")
    os.utime(server.pki / "client.key", ns=(1, 1))

    with pytest.raises(TryLater, match="does not answer"):
        api.get(ONE)
