"""Fixtures that keep the environment of whoever runs the tests out of them."""

from __future__ import annotations

import shutil
from pathlib import Path

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
    """No variable decides which programs are found, or which mirror is asked."""
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def only_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, and has but what a shell script needs."""
    folder = tmp_path / "path"
    folder.mkdir()
    for needed in ("cat", "sh"):
        (folder / needed).symlink_to(shutil.which(needed) or "")
    monkeypatch.setenv("PATH", str(folder))
    return folder
