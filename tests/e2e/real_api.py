"""A real API server and controller manager on loopback, over a real etcd, with the flags and keys of our own making."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.config import completed
from clusters.etcd import free_ports, make_cluster
from protokube.agent.controlplane import key_folders
from protokube.binaries.kubernetes import find
from protokube.binaries.product import Release
from protokube.cli.wiring import machine_keys
from protokube.config.complete import Config
from protokube.host.clock import SystemClock
from protokube.kube.client import KubeApi
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.launch.prepare import ensure_authorities
from protokube.manifests import kubeconfig
from protokube.manifests.component import words
from protokube.manifests.text import as_yaml
from protokube.store import Store
from protokube.store.open import open_store

HOST = "127.0.0.1"
FIRST = ("default", "kube-system")
BOOT_SECONDS = 90
KEYS = "/srv/kubernetes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealApi:
    """What a test needs of it."""

    config: Config
    wanted: MasterConfig
    store: Store
    keys: Path
    server: str
    api: KubeApi
    """As the agent: it may do everything."""
    opened: list[KubeApi] = field(default_factory=list)

    def by_token(self, token: str) -> KubeApi:
        return self._opened(KubeApi(self.server, ca=self.keys / "ca.crt", token=token, patience=20))

    def by_certificate(self, certificate: Path, key: Path) -> KubeApi:
        ca = self.keys / "ca.crt"
        return self._opened(KubeApi(self.server, ca=ca, certificate=certificate, key=key, patience=20))

    def _opened(self, api: KubeApi) -> KubeApi:
        self.opened.append(api)
        return api

    def may(self, verb: str, resource: str, *, user: str, groups: tuple[str, ...] = (), group: str = "") -> bool:
        """What the server says that somebody may do."""
        asked = {"verb": verb, "resource": resource.partition("/")[0], "group": group}
        if "/" in resource:
            asked["subresource"] = resource.partition("/")[2]
        spec = {"user": user, "groups": list(groups), "resourceAttributes": asked}
        tree = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
        answer = self.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", tree)
        return bool(answer["status"]["allowed"])


def programs() -> Release:
    found = find(None)
    assert found is not None, "there is no Kubernetes on this machine: run scripts/kubernetes"
    return found


def until(so: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """What is asked for, once it is there."""
    end = time.monotonic() + seconds
    while not (found := so()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return found


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def real_api(work: Path, *, controllers: bool = True) -> Iterator[RealApi]:
    """Ready, with its own roles in place; without controllers, nothing happens there but what a caller does."""
    kubernetes = programs()
    config = completed(cloud="local", name="laptop", masters=1, nodes=1, kubernetesVersion=kubernetes.version)
    wanted = from_config(config)
    store = open_store(f"file://{work / 'store'}")
    ensure_authorities(store, wanted)
    keys = machine_keys(store, wanted, work / "keys", SystemClock())
    keys.sync([name for name in wanted.certificates if not name.startswith("etcd-")])
    keys.sync_shared()
    for told in wanted.components:
        keys.give(told.name, key_folders.uses(wanted, told))
    (work / "etcd").mkdir()
    etcd = make_cluster(work / "etcd", "3.4", "a")
    try:
        etcd.start()
        etcd.wait()
        (port,) = free_ports(HOST, 1)
        tls = {"etcd-cafile": etcd.tls.ca, "etcd-certfile": etcd.tls.cert, "etcd-keyfile": etcd.tls.key}
        flags = {"bind-address": HOST, "secure-port": port, "etcd-servers": etcd.endpoints["a"], **tls}
        command = component(config, kubernetes, "kubeAPIServer", "kube-apiserver", work, flags)
        with running(command, work / "kube-apiserver.log") as process:
            server = f"https://{HOST}:{port}"
            folder = work / "keys"
            certificate, key = folder / "protokube.crt", folder / "protokube.key"
            api = KubeApi(server, ca=folder / "ca.crt", certificate=certificate, key=key, patience=20)
            found = RealApi(config=config, wanted=wanted, store=store, keys=folder, server=server, api=api)
            until(lambda: is_ready(api, process, work / "kube-apiserver.log"), "the API server is ready", BOOT_SECONDS)
            try:
                with controller_manager(found, kubernetes, work) if controllers else nullcontext():
                    yield found
            finally:
                for each in (api, *found.opened):
                    each.close()
    finally:
        etcd.close()


def is_ready(api: KubeApi, process: subprocess.Popen[bytes], log: Path) -> bool:
    from protokube.errors import ProtokubeError

    assert process.poll() is None, log.read_text(errors="replace")[-3000:]
    try:  # it makes its first namespaces a moment after it says so
        return bool(api.text("/readyz")) and all(api.get(f"/api/v1/namespaces/{name}") for name in FIRST)
    except ProtokubeError:
        return False


@contextmanager
def controller_manager(found: RealApi, kubernetes: Release, work: Path) -> Iterator[None]:
    """It approves by our rules, and signs."""
    name = "kube-controller-manager"
    file, keys = work / f"{name}.kubeconfig", found.keys
    who = {"ca": str(keys / "ca.crt"), "certificate": str(keys / f"{name}.crt"), "key": str(keys / f"{name}.key")}
    file.write_text(kubeconfig.by_files("laptop", found.server, name, **who))
    kinds = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    flags = {**dict.fromkeys(kinds, file), "secure-port": free_ports(HOST, 1)[0], "leader-elect": False}
    command = component(found.config, kubernetes, "kubeControllerManager", name, work, flags)
    with running(command, work / f"{name}.log"):
        yield


def component(
    config: Config, kubernetes: Release, field: str, name: str, work: Path, own: Mapping[str, Any]
) -> list[str]:
    """The command as our configuration renders it, with everything below a folder of its own."""
    rendered = config.rendered[""][field]
    flags = {flag: below(value, work) for flag, value in rendered["flags"].items()} | dict(own)
    for path, tree in rendered.get("files", {}).items():
        place = Path(below(path, work))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(as_yaml(tree))
    if "audit-log-path" in flags:
        Path(flags["audit-log-path"]).parent.mkdir(parents=True, exist_ok=True)
    return [str(kubernetes.folder / name), *words(flags)]


def below(value: Any, work: Path) -> Any:
    if isinstance(value, list):
        return [below(each, work) for each in value]
    if isinstance(value, str) and value.startswith((f"{KEYS}/", "/etc/", "/var/")):
        return value.replace(KEYS, str(work / "keys")) if value.startswith(KEYS) else f"{work}{value}"
    return value
