"""With real Kubernetes and a real kubelet there are more keys, tokens and sockets: a stranger gets at none of them."""

from __future__ import annotations

import base64
import json
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders.keys import differences, missing
from clusters.kubelet import KubeletCluster
from clusters.stranger import Verdict, all_secrets, just_now, try_everything
from protokube.store import layout
from protokube.store.open import open_store

NAME = "rights"
THERE = {"always", "Kubernetes", "up --kubelet", "with encryptionConfig"}


@dataclass(frozen=True)
class Tried:
    cluster: KubeletCluster
    verdict: Verdict
    known: set[str]


def put_encryption(cluster: KubeletCluster) -> str:
    """Before `up`, as a person does who wants Secrets encrypted; returns the key."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    provider = {"aescbc": {"keys": [{"name": "first", "secret": key}]}}
    tree = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [provider, {"identity": {}}]}],
    }
    store = open_store(f"file://{cluster.paths.store}")
    store.create(layout.secret(NAME, "encryption"), json.dumps(tree).encode())
    return key


@pytest.fixture(scope="module")
def tried() -> Iterator[Tried]:
    since = just_now()
    with tempfile.TemporaryDirectory(prefix="pkc-", dir="/tmp") as folder:
        state = Path(folder)
        state.chmod(0o755)
        with KubeletCluster(NAME, state) as cluster:
            key = put_encryption(cluster)
            cluster.up_with_kubelet(encryptionConfig=True)
            token = cluster.run("token", "create", "worker-7", "--ttl", "1h", "--cluster", NAME)
            assert token.code == 0, token.err
            exported = state / "exported"
            export = cluster.run("export", "kubeconfig", "--cluster", NAME, "-o", str(exported))
            assert export.code == 0, export.err
            known = {key, token.out.strip().partition(".")[2], *all_secrets(cluster)}
            try:
                yield Tried(cluster, try_everything(cluster, since, exported, known=known), known)
            finally:
                exported.unlink()


def test_a_stranger_opens_nothing_of_a_cluster_with_kubernetes(tried: Tried) -> None:
    assert tried.verdict.tried > 1000
    assert tried.verdict.could == {}


def test_a_stranger_finds_no_key_and_no_token_anywhere(tried: Tried) -> None:
    assert tried.verdict.secrets == []


def test_the_page_about_keys_is_right_about_a_cluster_with_kubernetes(tried: Tried) -> None:
    root = tried.cluster.paths.root

    assert differences(root, NAME, THERE) == []
    assert missing(root, NAME, tried.known) == []
