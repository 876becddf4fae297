"""Real etcd on certificates of ours: renewed under it without a restart, and healed after all of them have expired."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers_etcd import EtcdCluster, answers, eventually, make_cluster
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target, dial
from protokube.etcd.tls import Trust
from protokube.pki.authority import Authority, make_authority
from protokube.pki.files import sync_certificates
from protokube.pki.wanted import CertificateWanted

DAY = 86400.0
RENEWALS = 60


class Issuer:
    """Keeps the certificates of a test cluster as an agent does."""

    def __init__(self, now: float) -> None:
        self.authorities: dict[str, Authority] = {"ca": make_authority("ca", now - 2 * 365 * DAY)}
        self.wanted: dict[str, CertificateWanted] = {}
        self._first = now

    def write(self, directory: Path, wanted: dict[str, Any]) -> None:
        self.wanted = {name: CertificateWanted.read(told) for name, told in wanted.items()}
        self.sync(directory, self._first)

    def sync(self, directory: Path, now: float) -> list[str]:
        return sync_certificates(directory, self.wanted, self.authorities, now)


def served_by(cluster: EtcdCluster, name: str) -> bytes:
    """The certificate that a member shows to whoever connects now. Raises OSError."""
    target, context = Target.of(cluster.members[name].client_url), Trust(cluster.tls).contexts().gateway
    with dial(target, context, Deadline.after(2)) as connection:
        assert isinstance(connection, ssl.SSLSocket)
        return connection.getpeercert(binary_form=True) or b""


@pytest.fixture
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[EtcdCluster, Issuer]]:
    series, names, issued_at = request.param
    issuer = Issuer(time.time() + issued_at)
    cluster = make_cluster(tmp_path, series, names, issuer.write)
    try:
        cluster.start()
        yield cluster, issuer
    finally:
        cluster.close()


@pytest.mark.parametrize("running", [("3.4", "a", 0.0)], indirect=True)
def test_renewed_certificates_are_served_at_once_and_not_one_handshake_is_lost(
    running: tuple[EtcdCluster, Issuer],
) -> None:
    """Renewed far more often than ever in a life, while somebody connects all the time."""
    cluster, issuer = running
    cluster.wait()
    directory, over = cluster.tls.ca.parent, threading.Event()
    seen: set[bytes] = set()
    lost: list[str] = []

    def connect() -> None:
        while not over.is_set():
            try:
                seen.add(served_by(cluster, "a"))
            except OSError as error:
                lost.append(str(error))

    visitor = threading.Thread(target=connect)
    visitor.start()
    for number in range(RENEWALS):
        issuer.wanted["a"] = replace(issuer.wanted["a"], organizations=(str(number),))
        assert issuer.sync(directory, time.time()) == ["a: issued, it named somebody else"]
        time.sleep(0.02)
    over.set()
    visitor.join()

    newest = ssl.PEM_cert_to_DER_cert((directory / "a.crt").read_text())
    assert served_by(cluster, "a") == newest
    assert len(seen) > RENEWALS / 4, "most of them were really served"
    assert lost == []
    assert answers(cluster.client()) == ""


@pytest.mark.parametrize("running", [("3.5", "abc", -400 * DAY)], indirect=True)
def test_a_cluster_whose_certificates_have_all_expired_heals_without_a_restart(
    running: tuple[EtcdCluster, Issuer],
) -> None:
    cluster, issuer = running
    client = cluster.client()
    assert eventually(lambda: "" if "has expired" in cluster.members["a"].log else "it does not say so yet") == ""
    assert answers(client) != ""

    news = issuer.sync(cluster.tls.ca.parent, time.time())

    assert news == [f"{name}: issued, it was expired" for name in ("a", "b", "c", "client")]
    cluster.wait()
    assert client.put("healed", "yes") > 0
    assert all(member.process and member.process.poll() is None for member in cluster.members.values())
