"""The world of `dns_controller`: a real API server with nodes and pods, and a Route 53 fake (moto) over HTTP."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from moto.route53.models import RecordSet  # noqa: E402

from e2e.real_api import RealApi, until  # noqa: E402
from fakes.route53 import Route53Server  # noqa: E402
from protokube.kube.client import ApiError, KubeApi  # noqa: E402

NODES = 200
"""The pods are on these; others only have to be listed."""
ASKING = 500
"""Annotated pods, with two names each."""
ZONE = "bench.example.com"
HANDS = 6
CORE = "/api/v1/namespaces"


class Route53(Route53Server):
    """Counts requests, and the time spent inside the fake, which a controller can only reduce by fewer requests."""

    def __init__(self) -> None:
        super().__init__()
        self.hosted = self.zone(ZONE)
        self._answered = threading.Condition()
        self._fresh = list(self.sets(self.hosted))
        self.empty()

    def empty(self) -> None:
        self.backend.get_hosted_zone(self.hosted.id).rrsets = list(self._fresh)
        self.requests.clear()
        self.seconds = 0.0

    def answers(self, name: str) -> list[str]:
        return [value for each in self._kept() if each.name == f"{name}.{ZONE}." for value in each.records]

    def names(self) -> int:
        return sum(each.type == "A" for each in self._kept())

    def _kept(self) -> list[RecordSet]:
        return list(self.backend.get_hosted_zone(self.hosted.id).rrsets)

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        began = time.perf_counter()
        try:
            return super()._answer(environ, start_response)
        finally:
            self.seconds += time.perf_counter() - began
            with self._answered:
                self._answered.notify_all()

    def wait(self, so: Callable[[], bool], seconds: float) -> bool:
        """Whether it became so; looked at after each request only, so that waiting takes no time from anybody."""
        with self._answered:
            return self._answered.wait_for(so, seconds)


class Filler:
    """Creates nodes and pods concurrently over persistent connections."""

    def __init__(self, real: RealApi) -> None:
        self._real, self._local = real, threading.local()

    def fill(self, nodes: range, pods: range) -> None:
        with ThreadPoolExecutor(HANDS) as hands:
            list(hands.map(self._node, nodes))
            list(hands.map(self._pod, pods))

    @property
    def api(self) -> KubeApi:
        if not hasattr(self._local, "api"):
            keys = self._real.keys
            self._local.api = self._real.by_certificate(keys / "protokube.crt", keys / "protokube.key")
        found: KubeApi = self._local.api
        return found

    def _node(self, number: int) -> None:
        self.api.create("/api/v1/nodes", _named("Node", f"n{number}"))
        high, low = divmod(number, 250)
        internal, external = (f"10.{high}.{low}.1", f"10.{high}.{low}.2"), (f"192.{high}.{low}.1",)
        kinds = [*(("InternalIP", each) for each in internal), *(("ExternalIP", each) for each in external)]
        addresses = [{"type": kind, "address": address} for kind, address in kinds]
        self.api.merge(f"/api/v1/nodes/n{number}/status", {"status": {"addresses": addresses}})

    def _pod(self, number: int) -> None:
        asks = number < ASKING
        names = {
            f"dns.alpha.kubernetes.io/{view}": f"{view}-{number}.{ZONE}" for view in ("internal", "external") if asks
        }
        variables = [{"name": f"VARIABLE_{each}", "value": "something or other"} for each in range(12)]
        container = {"name": "web", "image": "web", "env": variables, "ports": [{"containerPort": 8080}]}
        metadata = {"name": f"p{number}", "labels": {"app": f"app-{number % 40}", "tier": "web"}, "annotations": names}
        spec = {"nodeName": f"n{number % NODES}", "hostNetwork": asks, "containers": [container]}
        spec["automountServiceAccountToken"] = False  # no controller creates tokens here
        tree = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.api.create(f"{CORE}/default/pods", tree)
        if asks:
            self.address(number, 1)

    def address(self, number: int, which: int) -> None:
        address = f"10.0.{number % NODES}.{which}"
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        self.api.merge(f"{CORE}/default/pods/p{number}/status", {"status": status})


def has_account(real: RealApi) -> bool:
    """Create the service account: no controller does it here, and the namespace appears a moment after readiness."""
    try:
        real.api.create(f"{CORE}/default/serviceaccounts", _named("ServiceAccount", "default"))
    except ApiError as error:
        return error.reason == "AlreadyExists"
    return True


def token(real: RealApi) -> str:
    """Of a service account in kube-system that may do everything."""
    until(lambda: has_account(real), "the namespace is there, with an account for its pods")
    name, group = "original", "rbac.authorization.k8s.io"
    real.api.create(f"{CORE}/kube-system/serviceaccounts", _named("ServiceAccount", name))
    binding = {
        **_named("ClusterRoleBinding", name),
        "apiVersion": f"{group}/v1",
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}],
    }
    real.api.create(f"/apis/{group}/v1/clusterrolebindings", binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    return str(real.api.create(f"{CORE}/kube-system/serviceaccounts/{name}/token", request)["status"]["token"])


def _named(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
