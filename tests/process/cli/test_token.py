"""`protokube token`, against an API server over real TLS."""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Call
from builders.config import completed
from fakes.kube_server import KubeServer, kube_server, serving
from protokube.addons.tokens import PATH
from protokube.errors import ExitCode
from protokube.launch import prepare
from protokube.launch.derive import from_config
from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import load_authority
from protokube.pki.issue import issue
from protokube.pki.keystore import Keystore
from protokube.pki.shared import CLUSTER_AUTHORITY
from protokube.store import layout
from protokube.store.configuration import put_config
from protokube.store.file import FileStore

TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}\n")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeServer]:
    with kube_server(tmp_path) as found:
        monkeypatch.setenv("KUBECONFIG", str(found.kubeconfig(tmp_path / "config")))
        monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path / "clusters"))
        yield found


def kept(server: KubeServer) -> None:
    """What was given as text is kept as a real server keeps it."""
    for tree in server.kube.objects.values():
        texts = tree.pop("stringData", {})
        tree.setdefault("data", {}).update({name: b64encode(text.encode()).decode() for name, text in texts.items()})


def test_a_token_is_made_listed_without_its_secret_and_deleted(call: Call, server: KubeServer) -> None:
    made = call("token", "create", "worker-7", "--ttl", "1h", "--description", "rack 7")
    kept(server)
    listed = call("token", "list")
    token_id, _, secret = made.out.strip().partition(".")
    deleted = call("token", "delete", token_id)

    assert (made.code, bool(TOKEN.fullmatch(made.out))) == (ExitCode.OK, True)
    assert token_id in listed.out
    assert "rack 7" in listed.out
    assert "worker-7" in listed.out
    assert secret not in listed.out
    assert (deleted.code, server.kube.objects) == (ExitCode.OK, {})


def test_as_data(call: Call, server: KubeServer) -> None:
    made = json.loads(call("token", "create", "worker-7", "-o", "json").out)
    kept(server)
    (listed,) = json.loads(call("token", "list", "-o", "json").out)

    assert made["token"].startswith(f"{made['id']}.")
    assert listed == {name: value for name, value in made.items() if name != "token"}


def test_where_there_are_none_that_is_said(call: Call, server: KubeServer) -> None:
    server.answers.append((200, b'{"items": []}'))

    assert call("token", "list").out == "no tokens\n"


def test_a_token_that_is_not_there_cannot_be_deleted(call: Call, server: KubeServer) -> None:
    answer = call("token", "delete", "abcdef")

    assert (answer.code, answer.err.splitlines()[0]) == (ExitCode.INVALID, "error: there is no token abcdef")


def test_a_wrong_id_asks_nobody(call: Call, server: KubeServer) -> None:
    assert call("token", "delete", "../x").code == ExitCode.INVALID
    assert server.seen == []


@pytest.mark.parametrize("ttl", ["1s", "soon", "-1h", "73h", "3650d", "999999999d", "9" * 400 + "d"])
def test_a_time_that_makes_no_sense_asks_nobody(call: Call, server: KubeServer, ttl: str) -> None:
    answer = call("token", "create", "worker-7", "--ttl", ttl)
    assert answer.code == ExitCode.INVALID
    assert "bug in protokube" not in answer.err
    assert server.seen == []


def test_three_days_are_the_longest_that_a_token_is_good_for(call: Call, server: KubeServer) -> None:
    assert call("token", "create", "worker-7", "--ttl", "72h").code == ExitCode.OK
    assert "--ttl of at most 72h" in call("token", "create", "worker-7", "--ttl", "999999999d").err


@pytest.mark.parametrize("name", ["Worker", "a_b", "../x", "system:node:a"])
def test_a_name_that_no_node_can_have_asks_nobody(call: Call, server: KubeServer, name: str) -> None:
    answer = call("token", "create", name)

    assert (answer.code, answer.err.splitlines()[0]) == (
        ExitCode.INVALID, f"error: {name!r} cannot be the name of a node"
    )  # fmt: skip
    assert server.seen == []


def test_a_file_that_is_named_wins(call: Call, server: KubeServer, tmp_path: Path) -> None:
    answer = call("token", "list", "--kubeconfig", str(tmp_path / "gone"))

    assert answer.code == ExitCode.INVALID
    assert "there is no kubeconfig" in answer.err


def test_a_refusal_is_told_in_the_servers_words(call: Call, server: KubeServer) -> None:
    server.answers.append((403, b'{"message": "secrets is forbidden", "reason": "Forbidden"}'))

    answer = call("token", "list")

    assert (answer.code, answer.err) == (ExitCode.REFUSED, f"error: GET {PATH}: secrets is forbidden\n")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    """The store of a cluster with keys; no kubeconfig leads there."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path / "clusters"))
    found, config = FileStore(tmp_path / "store"), completed(cloud="local", name="far")
    put_config(found, config, [("spec.yaml", "")])
    prepare.ensure_authorities(found, from_config(config))
    return found


@pytest.fixture
def far(store: FileStore, tmp_path: Path) -> Iterator[KubeServer]:
    """The API server of that cluster: only its own authority signed it."""
    authority = load_authority(Keystore(store=store, layout=layout, cluster="far"), CLUSTER_AUTHORITY)
    wanted = CertificateWanted(
        authority=authority.name, common_name="kube-apiserver", names=("127.0.0.1",), usages=("server auth",)
    )
    issued = issue(wanted, authority, time.time(), 3600.0)
    pki = tmp_path / "far-pki"
    pki.mkdir()
    for name, data in (
        ("ca.crt", authority.certificate),
        ("server.crt", issued.certificate),
        ("server.key", issued.key),
    ):
        (pki / name).write_bytes(data)
    with serving(pki) as found:
        yield found


def test_with_a_store_the_api_is_reached_by_its_own_authority(call: Call, far: KubeServer, store: FileStore) -> None:
    made = call("token", "create", "worker-7", "--store", store.url, "--server", far.url)

    assert (made.code, bool(TOKEN.fullmatch(made.out))) == (ExitCode.OK, True), made.err
    assert [method for method, *_ in far.seen] == ["POST"]


def test_with_a_store_the_api_is_asked_for_at_its_public_name(call: Call, store: FileStore) -> None:
    answer = call("token", "list", "--store", store.url, "--cluster", "far")

    assert answer.code == ExitCode.TRY_LATER
    assert "api.far" in answer.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--server", "https://127.0.0.1"], "--server needs --store"),
        (["--store", "URL", "--kubeconfig", "config"], "--kubeconfig and --store are two ways to the API"),
        (["--store", "URL", "--cluster", "fra"], "did you mean `far`?"),
        (["--store", "URL", "--server", "http://127.0.0.1"], "is not the URL of an API server"),
    ],
)
def test_options_that_do_not_go_together_ask_nobody(
    call: Call, far: KubeServer, store: FileStore, arguments: list[str], says: str
) -> None:
    answer = call("token", "list", *[store.url if each == "URL" else each for each in arguments])

    assert answer.code == ExitCode.INVALID
    assert says in answer.err
    assert far.seen == []
