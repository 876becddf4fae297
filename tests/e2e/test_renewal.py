"""Certificates that live a minute, on real Kubernetes: renewed under load, and after all of them ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from clusters.real import RealCluster, until
from e2e.served import served
from protokube.binaries.kubernetes import find
from protokube.local.drill import api_writing
from protokube.local.drill.writer import as_found, lost, regressions

LIFE = float(os.environ.get("PROTOKUBE_LIFE", "60"))
CALM = 180.0
"""Seconds of life from which every single API server is started again in time, however busy the machine is. With less,
all of them together still serve, and one of them may show an ended certificate until it is its turn."""
RENEWALS = int(os.environ.get("PROTOKUBE_RENEWALS", "5"))
"""How often each API server gets a new certificate while somebody writes."""
PATIENCE = 3
"""Times the life of a certificate for each renewal, on a busy machine."""
LONGEST_GAP = 20.0
API, ETCD = 443, 4001


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    found = find(None)
    assert found is not None, "scripts/kubernetes brings Kubernetes here"
    with RealCluster() as cluster:
        spec = cluster.write_spec(pki={"certificateLifetime": f"{LIFE:g}s"})
        cluster.up(str(spec), "--kubernetes", found.version, "--timeout", "400")
        spec.unlink()
        yield cluster


def addresses(cluster: RealCluster) -> dict[str, str]:
    return {each["name"]: each["address"] for each in cluster.hosts()}


def left(certificate: x509.Certificate) -> float:
    return certificate.not_valid_after_utc.timestamp() - time.time()


class Seen:
    """The serial numbers that the API server of each host has shown, in their order."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self.serials: dict[str, list[int]] = {host: [] for host in addresses(cluster)}
        self.ended: list[str] = []
        """Whoever showed something that had ended."""

    def look(self) -> bool:
        """Whether all have been renewed often enough."""
        for host, address in addresses(self._cluster).items():
            try:
                shown = served(self._cluster, address, API)
            except OSError:
                continue  # it is being started again
            if left(shown) <= 0:
                self.ended.append(f"{host} at {time.time():.0f}")
            known = self.serials.setdefault(host, [])
            if shown.serial_number not in known:
                known.append(shown.serial_number)
        return all(len(each) > RENEWALS for each in self.serials.values())


def test_renewals_are_noticed_by_nobody_who_writes(cluster: RealCluster) -> None:
    seen = Seen(cluster)
    with cluster.writing(every=0.1) as etcd, api_writing.writing(cluster.paths, "renewal") as api:
        assert api is not None
        until(seen.look, f"each API server has been renewed {RENEWALS} times", LIFE * RENEWALS * PATIENCE, every=1.0)
        cluster.until_ready(120)
        api_log, etcd_log = api.writer.stop(), etcd.stop()
        there = until(api.read_back, "what was written")

    sys.stderr.write(f"\nAPI: {told(api_log)}; etcd: {told(etcd_log)}; ended: {len(seen.ended)}\n")
    assert lost(api_log, there) == ()
    assert regressions(api_log) == ()
    assert lost(etcd_log, as_found(cluster.client().read(etcd_log.prefix))) == ()
    assert regressions(etcd_log) == ()
    assert len(api_log.acknowledged) > LIFE
    assert api_log.longest_gap.seconds < LONGEST_GAP
    assert etcd_log.longest_gap.seconds < LONGEST_GAP
    if LIFE >= CALM:
        assert seen.ended == []
        everything_shown_is_valid(cluster)


def told(log: Any) -> str:
    return f"{len(log.acknowledged)} of {len(log.writes)}, longest gap {log.longest_gap.seconds:.1f} s"


def shown_by(cluster: RealCluster, address: str, port: int) -> x509.Certificate:
    """It may be being started again at this very moment."""
    return until(lambda: served(cluster, address, port), f"{address}:{port} answers")


def serials(cluster: RealCluster) -> set[int]:
    return {shown_by(cluster, address, API).serial_number for address in addresses(cluster).values()}


def everything_shown_is_valid(cluster: RealCluster) -> None:
    for address in addresses(cluster).values():
        for port in (API, ETCD):
            until(
                lambda address=address, port=port: 0 < left(served(cluster, address, port)) <= LIFE,  # type: ignore[misc]
                f"{address}:{port} shows something valid", 30,
            )  # fmt: skip


def certificates(cluster: RealCluster) -> list[Path]:
    """Of all hosts, without those of authorities."""
    found = [
        each for host in addresses(cluster) for each in (cluster.paths.host(host) / "srv/kubernetes").glob("*.crt")
    ]
    return [each for each in found if not each.name.endswith("ca.crt")]


def test_a_cluster_that_was_off_until_all_its_certificates_had_ended_heals(cluster: RealCluster) -> None:
    cluster.until_ready(120)
    before = cluster.client().put("/before", "the night")
    ends = [x509.load_pem_x509_certificate(each.read_bytes()).not_valid_after_utc for each in certificates(cluster)]
    assert len(ends) > 20
    shown = serials(cluster)

    cluster.power_off()
    until(lambda: time.time() > max(ends).timestamp() + 1, "all of them have ended", LIFE + 60, every=1.0)
    cluster.power_on()

    cluster.until_ready(300)
    (found,) = cluster.client().read("/before")
    assert (found.value, found.key) == ("the night", "/before")
    assert cluster.client().put("/after", "it") > before
    with api_writing.writing(cluster.paths, "after") as api:
        assert api is not None
        until(lambda: api.writer.log().acknowledged, "the API takes writes again")
    everything_shown_is_valid(cluster)
    assert not shown & serials(cluster)
