"""The command, called as a user calls it: inside this process, or as one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.cli.up.kubernetes import MIRRORS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MINIMAL = str(EXAMPLES / "minimal.yaml")
COMMAND = [sys.executable, "-m", "protokube"]
NOWHERE = "http://127.0.0.1:1"
"""Where nobody listens: a test that names no Kubernetes has none, and does not look for one outside."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the shell sees of one call."""

    code: int
    out: str
    err: str


class Call(Protocol):
    """`call("complete", "spec.yaml")`."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Answer:
        """One call of the command; what it says, and its exit code."""


def environment(**more: str) -> dict[str, str]:
    """Ours, without what would change how a command behaves; whoever runs the tests chooses the programs.

    Clusters are isolated, whoever makes them: tests, soak and bench. None gets into the kubeconfig of who runs them,
    and nobody looks for Kubernetes outside.
    """
    left_out = {name for name in os.environ if name.startswith(("PROTOKUBE_", "PYTHONUNBUFF"))} - {
        KUBERNETES.chosen,
        ETCD.chosen,
    }
    ours = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**ours, "PROTOKUBE_ISOLATED": "1", "PROTOKUBE_KUBECONFIG": "0", MIRRORS: NOWHERE, **more}


def process(*arguments: str, stdin: bytes = b"", **more: Any) -> Answer:
    """One call of the command as a process of its own."""
    env = environment(**more.pop("env", {}))
    done = subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, timeout=60, env=env, **more)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
