"""Nothing of the environment decides what these tests find or whom they ask."""

from __future__ import annotations

import pytest

FOREIGN = (
    "PROTOKUBE_KUBERNETES_BIN",
    "PROTOKUBE_KUBERNETES_MIRROR",
    "PROTOKUBE_ETCD_BIN",
    "PROTOKUBE_ETCD_MIRROR",
    "http_proxy",
    "HTTP_PROXY",
    "all_proxy",
    "ALL_PROXY",
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
