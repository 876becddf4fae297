"""Every certificate of three masters, as openssl sees it: each is what its holder needs, and nothing more."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders.config import completed
from protokube.cli.wiring import machine_keys
from protokube.host.clock import SystemClock
from protokube.launch.derive import from_config
from protokube.launch.prepare import ensure_authorities
from protokube.store.memory import MemoryStore

MASTERS = "O = system:masters"
CLIENT, SERVER = "TLS Web Client Authentication", "TLS Web Server Authentication"
BOTH = f"{SERVER}, {CLIENT}"
LOOPBACK = ["DNS:localhost", "IP Address:127.0.0.1"]
API = [
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    "DNS:kubernetes.default.svc.cluster.local",
    "DNS:api.internal.laptop",
    "DNS:api.laptop",
    "IP Address:100.64.0.1",
]


@dataclass(frozen=True)
class Expected:
    """What openssl shows of one certificate."""

    issuer: str
    subject: str
    usages: str
    names: tuple[str, ...] = ()


def member(short: str, kind: str) -> Expected:
    name = f"etcd-{short}.internal.laptop"
    return Expected(
        "etcd-peer-ca" if kind == "peer" else "etcd-client-ca", f"CN = {name}", BOTH, (f"DNS:{name}", *LOOPBACK)
    )


EXPECTED = {
    "kube-apiserver": Expected("kubernetes-ca", "CN = kube-apiserver", SERVER, (*API, *LOOPBACK)),
    "kube-controller-manager": Expected("kubernetes-ca", "CN = system:kube-controller-manager", CLIENT),
    "kube-scheduler": Expected("kubernetes-ca", "CN = system:kube-scheduler", CLIENT),
    "kube-proxy": Expected("kubernetes-ca", "CN = system:kube-proxy", CLIENT),
    "dns-controller": Expected("kubernetes-ca", "CN = system:dns-controller", CLIENT),
    "protokube": Expected("kubernetes-ca", f"CN = protokube, {MASTERS}", CLIENT),
    "kube-apiserver-kubelet-client": Expected("kubernetes-ca", "CN = kube-apiserver", CLIENT),
    "front-proxy-client": Expected("front-proxy-ca", "CN = front-proxy-client", CLIENT),
    "kube-apiserver-etcd-client": Expected("etcd-client-ca", "CN = kube-apiserver", CLIENT),
    "protokube-etcd-client": Expected("etcd-client-ca", "CN = protokube", CLIENT),
    **{f"etcd-{short}-{kind}": member(short, kind) for short in "abc" for kind in ("peer", "server")},
}
AUTHORITIES = ["etcd-client-ca", "etcd-peer-ca", "front-proxy-ca", "kubernetes-ca"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificates of all three masters of a completed cluster, in one place."""
    made = tmp_path_factory.mktemp("kubernetes")
    config = completed(cloud="local", masters=3, name="laptop", etcdClusters=[{"name": "main"}])
    wanted, store = from_config(config), MemoryStore("memory://pki")
    ensure_authorities(store, wanted)
    keys = machine_keys(store, wanted, made, SystemClock())
    keys.sync(sorted(wanted.certificates))
    keys.sync_shared()
    return made


def openssl(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def extension(folder: Path, name: str, what: str) -> str:
    """One extension as text; empty if it has none."""
    lines = openssl(folder, "x509", "-in", f"{name}.crt", "-noout", "-ext", what).splitlines()
    return lines[1].strip() if len(lines) > 1 else ""


def verifies(folder: Path, name: str, authority: str, *purpose: str) -> bool:
    arguments = ("verify", "-x509_strict", "-no-CApath", "-no-CAfile", "-CAfile", f"{authority}.crt", *purpose)
    return bool(openssl(folder, *arguments, f"{name}.crt"))


def test_these_are_all_there_are(folder: Path) -> None:
    shared = ["ca.crt", "ca.key", "service-account.key", "service-account.pub"]
    pairs = [f"{name}.{kind}" for name in EXPECTED for kind in ("crt", "key")]

    assert sorted(each.name for each in folder.iterdir()) == sorted(
        [*pairs, *shared, *(f"{name}.crt" for name in AUTHORITIES)]
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_each_names_whom_it_should_for_what_it_should(folder: Path, name: str) -> None:
    expected = EXPECTED[name]
    shown = openssl(folder, "x509", "-in", f"{name}.crt", "-noout", "-subject", "-issuer").splitlines()

    assert shown == [f"subject={expected.subject}", f"issuer=CN = {expected.issuer}"]
    assert extension(folder, name, "extendedKeyUsage") == expected.usages
    assert extension(folder, name, "keyUsage") == "Digital Signature"
    assert extension(folder, name, "basicConstraints") == "CA:FALSE"
    names = extension(folder, name, "subjectAltName")
    assert sorted(names.split(", ") if names else []) == sorted(expected.names)


@pytest.mark.parametrize("name", EXPECTED)
def test_each_is_believed_under_its_own_authority_and_under_no_other(folder: Path, name: str) -> None:
    """So nothing that the cluster's authority signs, a kubelet's or a user's certificate, opens anything in etcd."""
    assert [each for each in AUTHORITIES if verifies(folder, name, each)] == [EXPECTED[name].issuer]


@pytest.mark.parametrize("name", EXPECTED)
def test_each_is_good_for_its_side_of_a_connection_and_not_for_the_other(folder: Path, name: str) -> None:
    issuer, usages = EXPECTED[name].issuer, EXPECTED[name].usages
    sides = {CLIENT: "sslclient", SERVER: "sslserver"}

    good = {usage for usage, side in sides.items() if verifies(folder, name, issuer, "-purpose", side)}
    assert good == {usage for usage in sides if usage in usages}


@pytest.mark.parametrize("name", AUTHORITIES)
def test_an_authority_signs_certificates_and_nothing_below_it_does(folder: Path, name: str) -> None:
    assert extension(folder, name, "basicConstraints") == "CA:TRUE, pathlen:0"
    assert extension(folder, name, "keyUsage") == "Certificate Sign, CRL Sign"
    assert [each for each in AUTHORITIES if verifies(folder, name, each)] == [name]


def test_keys_are_closed_and_no_two_are_the_same(folder: Path) -> None:
    keys = sorted(folder.glob("*.key"))

    assert {each.stat().st_mode & 0o777 for each in keys} == {0o600}
    assert len({each.read_bytes() for each in keys}) == len(keys)


def test_the_authority_that_components_read_is_the_clusters(folder: Path) -> None:
    assert (folder / "ca.crt").read_bytes() == (folder / "kubernetes-ca.crt").read_bytes()
