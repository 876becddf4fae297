"""The flag tables that we go by are what the programs that run here list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from protokube.binaries.kubernetes import find
from protokube.binaries.product import Release
from protokube.local.bringup import CACHE
from protokube.local.etcd_choice import Needs, choose

SCRIPT = Path(__file__).parents[2] / "scripts/flags.py"


def compared(folder: Path, table: str) -> str:
    command = [sys.executable, str(SCRIPT), str(folder), "--compare", table]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def not_from_elsewhere(version: str) -> Release:
    raise AssertionError(f"etcd {version} is not here: run scripts/kubernetes")


def test_kubernetes_lists_the_flags_of_our_table() -> None:
    found = find(None, CACHE)
    assert found
    table = minor(found.version)
    assert compared(found.folder, table) == f"{table} has the same"


def test_etcd_lists_the_flags_of_our_table() -> None:
    kubernetes = find(None, CACHE)
    assert kubernetes
    found = choose(Needs(kubernetes=kubernetes.version), CACHE, not_from_elsewhere)
    table = f"etcd-{minor(found.version)}"
    assert compared(found.etcd.parent, table) == f"{table} has the same"
