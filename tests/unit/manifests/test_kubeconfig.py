"""A kubeconfig names one cluster and one user: by files for a component, by content for a person."""

from __future__ import annotations

from base64 import b64decode

import yaml

from protokube.manifests.kubeconfig import by_content, by_files

SERVER = "https://127.0.0.1:443"


def test_a_component_is_told_files_so_that_renewed_ones_are_read() -> None:
    text = by_files("laptop", SERVER, "kube-scheduler", ca="/srv/ca.crt", certificate="/srv/s.crt", key="/srv/s.key")

    assert yaml.safe_load(text) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "laptop", "cluster": {"server": SERVER, "certificate-authority": "/srv/ca.crt"}}],
        "users": [{"name": "kube-scheduler", "user": {"client-certificate": "/srv/s.crt", "client-key": "/srv/s.key"}}],
        "contexts": [{"name": "laptop", "context": {"cluster": "laptop", "user": "kube-scheduler"}}],
        "current-context": "laptop",
    }


def test_a_person_gets_one_file_that_names_no_other() -> None:
    tree = yaml.safe_load(by_content("laptop", SERVER, "admin", ca=b"ca", certificate=b"crt", key=b"\xff\x00key"))
    (cluster,), (user,) = tree["clusters"], tree["users"]

    assert b64decode(cluster["cluster"]["certificate-authority-data"]) == b"ca"
    assert {name: b64decode(data) for name, data in user["user"].items()} == {
        "client-certificate-data": b"crt",
        "client-key-data": b"\xff\x00key",
    }
    assert "certificate-authority" not in cluster["cluster"]


def test_a_name_that_looks_like_something_else_stays_a_name() -> None:
    tree = yaml.safe_load(by_files("1.20", SERVER, "yes", ca="", certificate="", key=""))

    assert tree["current-context"] == "1.20"
    assert tree["users"][0]["name"] == "yes"
