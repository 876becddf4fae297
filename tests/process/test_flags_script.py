"""The script that reads flag tables off programs, with programs that print a help of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fakes.programs import a_program
from protokube.config.flags import COMPONENTS

SCRIPT = Path(__file__).parents[2] / "scripts/flags.py"
PFLAGS = """Usage:
  kubelet [flags]

Flags:
      --address ip                 Where to listen (default 0.0.0.0) (DEPRECATED: use the file)
      --feature-gates mapStringBool A set of pairs. Options are:
                                   APIServerTracing=true|false (BETA - default=true)
                                   --not-a-flag is text
  -h, --help                       help for kubelet
      --brand-new strings          Some (default [a,b])
      --node-labels mapStringString  Labels (default "x=\\"y\\"")
      --version version[=true]     print Kubernetes v1.36.9
"""
ETCD = """etcd Version: 3.6.99
Member:
  --name 'default'
    Human-readable name.
  --max-snapshots '5'
    Deprecated in v3.6 and will be decommissioned in v3.8.

Clustering (to be deprecated in v4):
  --brand-new
    Something.
"""


def compared(folder: Path, table: str) -> list[str]:
    command = [sys.executable, str(SCRIPT), str(folder), "--compare", table]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_flags_of_kubernetes_are_read_with_type_default_and_deprecation(tmp_path: Path) -> None:
    for name in COMPONENTS.values():
        a_program(tmp_path, name, PFLAGS)

    told = compared(tmp_path, "1.36")

    assert "kubelet --brand-new: new {'default': '[a,b]', 'type': 'strings'}" in told
    assert "kubelet --authorization-mode: gone" in told
    assert not any("--not-a-flag" in line for line in told)
    assert not any(line.startswith("kubelet --address:") for line in told), "it is as the table has it"
    assert not any(line.startswith("kubelet --version:") for line in told)
    assert next(line for line in told if line.startswith("kubelet --node-labels")).endswith(
        "is now {'default': 'x=\"y\"', 'type': 'mapStringString'}"
    )


def test_flags_of_etcd_are_read_with_section_default_and_deprecation(tmp_path: Path) -> None:
    a_program(tmp_path, "etcd", ETCD)

    told = compared(tmp_path, "etcd-3.6")

    assert "etcd --brand-new: new {'default': '', 'section': 'Clustering'}" in told
    assert "etcd --wal-dir: gone" in told
    assert not any(line.startswith(("etcd --name:", "etcd --max-snapshots:")) for line in told)
