"""The real dns-controller between a real API server and BIND, and what one sees of it from both sides."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import dns.message
import dns.rcode

from e2e.real_api import RealApi, running, until
from fakes.name_servers import ZONE, Running
from protokube.kube.client import ApiError
from protokube.manifests import kubeconfig
from protokube.providers.dns.keys import TsigKey
from protokube.records.marklines import marks_in
from protokube.records.owners import Mark, mark_name

PODS, SERVICES = "/api/v1/namespaces/{}/pods", "/api/v1/namespaces/{}/services"
NODES = "/api/v1/nodes"
ANNOTATION = "dns.alpha.kubernetes.io/"
GRACE = 0.5


def full(name: str) -> str:
    return f"{name}.{ZONE}"


def command(zone: str, server: str, key_file: Path, login: Path, *words: str) -> list[str]:
    where = ["--dns=rfc2136", f"--zone={zone}", f"--server={server}", f"--key-file={key_file}"]
    told = [f"--kubeconfig={login}", "--metrics=", f"--grace={GRACE}"]
    return [sys.executable, "-m", "protokube", "dns-controller", *where, *told, *words]


def write_key(file: Path, key: TsigKey) -> None:
    file.write_text(f'key "{key.name}" {{ algorithm hmac-sha256; secret "{key.secret}"; }};\n')


@dataclass(frozen=True)
class World:
    """One cluster, one zone, and a folder for what a controller is told."""

    real: RealApi
    bind: Running
    folder: Path
    controllers: list[Controller] = field(default_factory=list)
    """Those that are meant to run now."""
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        keys = {"ca": "ca.crt", "certificate": "protokube.crt", "key": "protokube.key"}
        paths = {name: str(self.real.keys / key) for name, key in keys.items()}
        self.login.write_text(kubeconfig.by_files("laptop", self.real.server, "protokube", **paths))
        write_key(self.key_file, self.bind.key)

    @property
    def login(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def key_file(self) -> Path:
        return self.folder / "dns.key"

    def command(self, *words: str) -> list[str]:
        return command(ZONE, f"127.0.0.1:{self.bind.port}", self.key_file, self.login, *words)

    @contextmanager
    def controller(self, *words: str) -> Iterator[Controller]:
        log = self.folder / f"controller-{next(self._numbers)}.log"
        with running(self.command(*words), log) as process:
            self.controllers.append(Controller(process, log))
            yield self.controllers[-1]
        self.controllers.pop()

    # What the zone says.

    def values(self, name: str, kind: str = "A") -> list[str]:
        """As whoever asks for the name is told; sorted."""
        answer = self.bind.ask(dns.message.make_query(full(name), kind))
        assert answer.rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN)
        return sorted(each.to_text().removesuffix(".") for rrset in answer.answer for each in rrset)

    def marks(self, name: str) -> list[Mark]:
        answer = self.bind.ask(dns.message.make_query(mark_name(full(name)), "TXT"))
        texts = [b"".join(each.strings).decode() for rrset in answer.answer for each in rrset]
        assert all(map(marks_in, texts)), texts
        return sorted(mark for text in texts for mark in marks_in(text))

    def asked_by(self, name: str) -> list[str]:
        return [mark.by for mark in self.marks(name)]

    def by_hand(self, name: str, kind: str, value: str) -> None:
        update = self.bind.update()
        update.add(f"{full(name)}.", 60, kind, value)
        assert self.bind.ask(update, tcp=True).rcode() == dns.rcode.NOERROR

    def until_values(self, name: str, *values: str, kind: str = "A") -> None:
        self.until(lambda: self.values(name, kind) == sorted(values), f"{name} answers {sorted(values)}")

    def until(self, so: Callable[[], Any], what: str) -> Any:
        """Bounded, and at an end at once if a controller is."""
        return until(lambda: all(each.lives() for each in self.controllers) and so(), what, 60)

    # What the cluster is told.

    def node(self, name: str, internal: tuple[str, ...] = (), external: tuple[str, ...] = (), **told: str) -> None:
        metadata = {"name": name, **_annotated(told)}
        self.real.api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        self.addresses(name, internal, external)

    def addresses(self, name: str, internal: tuple[str, ...] = (), external: tuple[str, ...] = ()) -> None:
        kinds = {"InternalIP": internal, "ExternalIP": external}
        listed = [{"type": kind, "address": address} for kind, those in kinds.items() for address in those]
        self.real.api.merge(f"{NODES}/{name}/status", {"status": {"addresses": listed}})

    def pod(self, name: str, node: str, address: str = "", *, namespace: str = "default", **told: str) -> None:
        """Bound to its node and on its network; no kubelet is there, so its state is ours to write."""
        spec = {
            "nodeName": node, "hostNetwork": True, "automountServiceAccountToken": False,
            "containers": [{"name": "web", "image": "web"}],
        }  # fmt: skip
        tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **_annotated(told)}, "spec": spec}
        self.real.api.create(PODS.format(namespace), tree)
        if address:
            self.pod_address(name, address, namespace=namespace)

    def pod_address(self, name: str, address: str, *, namespace: str = "default") -> None:
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        self.real.api.merge(f"{PODS.format(namespace)}/{name}/status", {"status": status})

    def service(self, name: str, kind: str, *, namespace: str = "default", **told: str) -> None:
        tree = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, **_annotated(told)}}
        spec = {"type": kind, "ports": [{"port": 80}], "selector": {"app": name}}
        self.real.api.create(SERVICES.format(namespace), tree | {"spec": spec})

    def balanced(self, name: str, *points: dict[str, str], namespace: str = "default") -> None:
        status = {"loadBalancer": {"ingress": list(points)}}
        self.real.api.merge(f"{SERVICES.format(namespace)}/{name}/status", {"status": status})

    def delete_pod(self, name: str, *, namespace: str = "default") -> None:
        """At once: no kubelet would ever confirm it."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        self.real.api.request("DELETE", f"{PODS.format(namespace)}/{name}", options)

    def namespace(self, name: str) -> None:
        """Ready for pods: they need the account that the controller manager makes."""
        with suppress(ApiError):
            tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.real.api.create("/api/v1/namespaces", tree)
        until(lambda: self._has_account(name), f"{name} is ready for pods", 60)

    def _has_account(self, namespace: str) -> bool:
        try:
            return bool(self.real.api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
        except ApiError:
            return False

    def leader(self) -> str:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/protokube-dns-controller"
        try:
            return str(self.real.api.get(path)["spec"].get("holderIdentity") or "")
        except ApiError:
            return ""


def _annotated(told: dict[str, str]) -> dict[str, Any]:
    """`internal="a,b"`: names below the zone."""
    wanted = {f"{ANNOTATION}{view}": ",".join(map(full, names.split(","))) for view, names in told.items()}
    return {"annotations": wanted}


@dataclass
class Controller:
    process: subprocess.Popen[bytes]
    log: Path
    killed: bool = False

    def lives(self) -> bool:
        assert self.killed or self.process.poll() is None, self.log.read_text()
        return True

    def kill(self) -> None:
        self.killed = True
        self.process.kill()

    def said(self, words: str) -> bool:
        return words in self.log.read_text()
