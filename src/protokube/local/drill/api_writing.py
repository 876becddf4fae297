"""Writes through the Kubernetes API during a drill: one ConfigMap per write, to the API server that users connect to.

The resource version of a ConfigMap is etcd's revision, so these writes are checked like writes to etcd: acknowledged
writes persist, and revisions only increase.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from protokube.errors import ProtokubeError, TryLater
from protokube.kube.client import ApiError, KubeApi
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.local.drill.writer import Writer

EVERY = 0.1
SECONDS, PATIENCE = 2.0, 20.0
MAPS = "/api/v1/namespaces/default/configmaps"
LABEL = "protokube.io/drill"


class ConfigMaps:
    """Stores keys as ConfigMaps with one common label."""

    def __init__(self, api: KubeApi, drill: str) -> None:
        self._api, self._drill = api, drill

    def put(self, key: str, value: str, _lease: int = 0, /) -> int:
        tree = {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key, "labels": {LABEL: self._drill}},
            "data": {"value": value},
        }  # fmt: skip
        return int(self._api.create(MAPS, tree)["metadata"]["resourceVersion"])

    def read(self) -> dict[str, str]:
        found = self._api.get(MAPS, labelSelector=f"{LABEL}={self._drill}")["items"]
        return {each["metadata"]["name"]: each["data"]["value"] for each in found}

    def remove(self) -> None:
        self._api.request("DELETE", MAPS, query={"labelSelector": f"{LABEL}={self._drill}"})


class ApiWriteSession:
    """A running writer, and reading back what it wrote."""

    def __init__(self, writer: Writer, maps: ConfigMaps) -> None:
        self.writer, self._maps = writer, maps

    def read_back(self) -> dict[str, str]:
        """TryLater if the API does not answer."""
        try:
            return self._maps.read()
        except ApiError as why:
            raise TryLater(why.message) from why


@contextmanager
def writing(paths: Paths, drill: str) -> Iterator[ApiWriteSession | None]:
    """Write while the context lasts, and remove everything at its end; yields None without Kubernetes."""
    hasty, patient_one = (client_files.kube_api(paths, seconds) for seconds in (SECONDS, PATIENCE))
    if hasty is None or patient_one is None:
        yield None
        return
    maps, patient = ConfigMaps(hasty, drill), ConfigMaps(patient_one, drill)
    try:
        with Writer(maps, f"drill-{drill}-", every=EVERY, after_a_failure=EVERY) as writer:
            yield ApiWriteSession(writer, patient)
    finally:
        with suppress(ProtokubeError):
            patient.remove()
        for each in (hasty, patient_one):
            each.close()
