"""Builders for what the tests do not care about, and openssl to inspect what was made."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path

from cryptography import x509

from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import Authority, make_authority
from protokube.pki.keystore import Keystore, StoreAccess
from protokube.store import layout

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC).timestamp()
DAY = 86400.0
BOTH = ("server auth", "client auth")


def a_keystore(store: StoreAccess, cluster: str = "dev.example.com") -> Keystore:
    return Keystore(store=store, layout=layout, cluster=cluster)


def a_wanted(
    common_name: str = "etcd-a.internal.dev",
    *,
    authority: str = "etcd-peer-ca",
    organizations: tuple[str, ...] = (),
    names: tuple[str, ...] = ("etcd-a.internal.dev", "localhost", "127.0.0.1"),
    usages: tuple[str, ...] = BOTH,
) -> CertificateWanted:
    return CertificateWanted(
        authority=authority, common_name=common_name, organizations=organizations, names=names, usages=usages
    )


def authorities(*names: str, now: float = NOW) -> dict[str, Authority]:
    return {name: make_authority(name, now) for name in names or ("etcd-peer-ca",)}


def parsed(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def openssl_says(folder: Path, certificate: bytes, authority: bytes, purpose: str, now: float) -> str:
    """What another implementation thinks of a chain at a moment; `OK` if nothing."""
    (folder / "leaf.pem").write_bytes(certificate)
    (folder / "ca.pem").write_bytes(authority)
    command = ["openssl", "verify", "-x509_strict", "-attime", str(int(now)), "-purpose", purpose]
    command += ["-no-CApath", "-no-CAfile", "-CAfile", str(folder / "ca.pem"), str(folder / "leaf.pem")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return "OK" if ran.returncode == 0 else ran.stdout + ran.stderr
