"""Real etcd on certificates of ours: renewed under it without a restart, and healed after all of them have expired."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from clusters.etcd import EtcdCluster, acknowledges, answers, eventually, make_cluster
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target, dial
from protokube.etcd.tls import Trust
from protokube.local.drill.writer import Writer, as_found, lost, regressions
from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import Authority, make_authority
from protokube.pki.files import sync_certificates
from protokube.pki.renewal import LIFETIME, Place, look_every

DAY, HOUR = 86400.0, 3600.0
RENEWALS = 60
SHORT_LIFE, LIVES = 30.0, int(os.environ.get("PROTOKUBE_RENEWALS", "1"))


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

    def keep(self, directory: Path, name: str, place: Place, lifetime: float = LIFETIME) -> list[str]:
        """As the agent of one member does."""
        wanted = {name: self.wanted[name]}
        return sync_certificates(directory, wanted, self.authorities, time.time(), place, lifetime)


def served_by(cluster: EtcdCluster, name: str) -> bytes:
    """The certificate that a member shows to whoever connects now. Raises OSError."""
    target, context = Target.of(cluster.members[name].client_url), Trust(cluster.tls).contexts().gateway
    with dial(target, context, Deadline.after(20)) as connection:
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
    number = 0
    while number < RENEWALS or (len(seen) <= RENEWALS / 4 and number < 20 * RENEWALS):  # if etcd stood still, some more
        number += 1
        issuer.wanted["a"] = replace(issuer.wanted["a"], organizations=(str(number),))
        assert issuer.sync(directory, time.time()) == ["a: issued, it had another subject"]
        time.sleep(0.02)
    over.set()
    visitor.join()

    newest = ssl.PEM_cert_to_DER_cert((directory / "a.crt").read_text())
    assert served_by(cluster, "a") == newest
    assert len(seen) > RENEWALS / 4, "most of them were really served"
    assert lost == []
    assert eventually(lambda: answers(cluster.client())) == ""


@pytest.mark.parametrize("running", [("3.5", "abc", -400 * DAY)], indirect=True)
def test_a_cluster_whose_certificates_have_all_expired_heals_without_a_restart(
    running: tuple[EtcdCluster, Issuer],
) -> None:
    cluster, issuer = running
    client = cluster.client(timeout=2.0)
    assert eventually(lambda: "" if "has expired" in cluster.members["a"].log else "it does not say so yet") == ""
    assert answers(client) != ""

    news = issuer.sync(cluster.tls.ca.parent, time.time())

    assert news == [f"{name}: issued, it was expired" for name in ("a", "b", "c", "client")]
    cluster.wait()
    assert eventually(lambda: acknowledges(client, "healed")) == ""
    assert all(member.process and member.process.poll() is None for member in cluster.members.values())


@pytest.mark.parametrize("authority", [-HOUR, 0.0, HOUR])
def test_members_whose_clocks_are_an_hour_off_issue_certificates_on_which_a_quorum_forms(
    tmp_path: Path, authority: float
) -> None:
    """One agent issues an hour behind, one an hour ahead, and so did whoever made the authority, a moment ago."""
    clocks = {"a": -HOUR, "b": HOUR, "c": 0.0, "client": 0.0}
    authorities = {"ca": make_authority("ca", time.time() + authority)}

    def write(directory: Path, wanted: dict[str, Any]) -> None:
        for name, told in wanted.items():
            issued = {name: CertificateWanted.read(told)}
            sync_certificates(directory, issued, authorities, time.time() + clocks[name])

    cluster = make_cluster(tmp_path, "3.4", "abc", write)
    try:
        cluster.start()
        cluster.wait()
        for name in "abc":
            client = cluster.client(name)
            assert eventually(lambda: acknowledges(client, "formed")) == "", name  # noqa: B023
    finally:
        cluster.close()


class ShortLived:
    """Three agents that keep short certificates, each in its own turns, and somebody who connects anew all the time."""

    def __init__(self, cluster: EtcdCluster, issuer: Issuer) -> None:
        self._cluster, self._issuer, self._over = cluster, issuer, threading.Event()
        self._places = {name: Place(index, 3) for index, name in enumerate("abc")} | {"client": Place()}
        self.renewed: dict[str, list[str]] = {name: [] for name in self._places}
        self.refused: list[str] = []
        self._threads = [threading.Thread(target=work) for work in (self._keep, self._connect)]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join()

    def still_young(self) -> str:
        return " ".join(name for name, news in self.renewed.items() if len(news) <= LIVES)

    def _keep(self) -> None:
        while not self._over.wait(look_every(SHORT_LIFE)):
            for name, place in self._places.items():
                self.renewed[name] += self._issuer.keep(self._cluster.tls.ca.parent, name, place, SHORT_LIFE)

    def _connect(self) -> None:
        while not self._over.wait(0.2):
            for name in "abc":
                try:
                    served_by(self._cluster, name)
                except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                    continue  # it was stopped while we shook hands
                except ssl.SSLError as error:
                    self.refused.append(f"{name}: {error}")
                except OSError:
                    continue  # slow, or being started again, is not refused


@pytest.mark.parametrize("running", [("3.5", "abc", 0.0)], indirect=True)
def test_certificates_of_half_a_minute_are_renewed_in_time_under_a_writer(
    running: tuple[EtcdCluster, Issuer],
) -> None:
    cluster, issuer = running
    cluster.wait()

    with ShortLived(cluster, issuer) as agents:
        with Writer(cluster.client(timeout=2.0), "short/") as writer:
            assert eventually(agents.still_young, seconds=3 * LIVES * SHORT_LIFE) == ""
            log = writer.stop()
        for name in "abc":  # members connect anew too, all by certificates that did not exist at the start
            cluster.members[name].stop()
            cluster.members[name].start()
            cluster.wait(name)
        found = as_found(cluster.client().read("short/"))

    assert (lost(log, found), regressions(log)) == ((), ())
    assert log.longest_gap.seconds < SHORT_LIFE, "whoever lets its certificates expire is away for longer"
    assert agents.refused == []
    for name, (first, *rest) in agents.renewed.items():
        assert first == f"{name}: issued, it was valid for longer than is asked for"
        assert {each.partition("it was ")[2] for each in rest} <= {"due to be renewed", "overdue"}, name
