"""Certificates are renewed while we run, and the next connection uses the new ones."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import pytest

from builders.certificates import write_certificates
from protokube.errors import TryLater
from protokube.etcd.tls import TlsFiles, Trust

BOTH = ["server auth", "client auth"]


def a_certificate(name: str, *names: str) -> dict[str, object]:
    return {"authority": "ca", "commonName": name, "organizations": [], "names": [*names], "usages": BOTH}


def make(directory: Path, *names: str) -> TlsFiles:
    """An authority, a server that is called by these names, and a client."""
    write_certificates(directory, {"server": a_certificate("server", *names), "client": a_certificate("client")})
    return TlsFiles(ca=directory / "ca.crt", cert=directory / "client.crt", key=directory / "client.key")


def test_contexts_stay_the_same_while_the_files_do(tmp_path: Path) -> None:
    trust = Trust(make(tmp_path / "pki"))

    assert trust.contexts() is trust.contexts()


def test_contexts_are_made_anew_when_a_file_changes(tmp_path: Path) -> None:
    files = make(tmp_path / "pki")
    trust = Trust(files)
    before = trust.contexts()

    make(tmp_path / "renewed")
    for name in ("ca.crt", "client.crt", "client.key"):
        (tmp_path / "renewed" / name).replace(tmp_path / "pki" / name)

    assert trust.contexts() is not before


def test_a_pair_that_does_not_match_yet_leaves_the_old_contexts_in_place(tmp_path: Path) -> None:
    trust = Trust(make(tmp_path / "pki"))
    before = trust.contexts()
    make(tmp_path / "renewed")

    (tmp_path / "renewed" / "client.crt").replace(tmp_path / "pki" / "client.crt")
    assert trust.contexts() is before

    (tmp_path / "renewed" / "client.key").replace(tmp_path / "pki" / "client.key")
    assert trust.contexts() is not before


def test_files_that_vanish_leave_the_old_contexts_in_place(tmp_path: Path) -> None:
    trust = Trust(make(tmp_path / "pki"))
    before = trust.contexts()
    shutil.rmtree(tmp_path / "pki")

    assert trust.contexts() is before


def test_files_that_were_never_there_are_waited_for(tmp_path: Path) -> None:
    files = TlsFiles(ca=tmp_path / "ca.crt", cert=tmp_path / "client.crt", key=tmp_path / "client.key")

    with pytest.raises(TryLater, match="our certificate cannot be read") as caught:
        Trust(files).contexts()

    assert str(files.key) in caught.value.want


def test_old_versions_of_tls_are_not_spoken_and_http2_is_offered_for_grpc_alone(tmp_path: Path) -> None:
    contexts = Trust(make(tmp_path / "pki")).contexts()

    for each in (contexts.gateway, contexts.grpc):
        assert each.minimum_version == ssl.TLSVersion.TLSv1_2
        assert each.verify_mode == ssl.CERT_REQUIRED
        assert each.check_hostname
