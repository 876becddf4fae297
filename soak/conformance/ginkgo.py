"""Run specs of the suite against a cluster, several at a time, and read their results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries.product import Release
from soak.conformance.specs import Spec, pattern, read_report

DOT = "•".encode()
"""What Ginkgo prints when a spec has ended."""
SECONDS_TO_LIST = 120.0
SCRATCH = "tmp"
FOREIGN = ("AWS_", "GINKGO", "KUBE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
"""Prefixes of environment variables that would change what the suite does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster that the suite runs against."""

    kubeconfig: Path
    kubectl: Path
    nodes: int
    loses_nodes: bool = False
    """Whether nodes are replaced during the run; otherwise every test waits at its end until all nodes are ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The suite of one version, and the folder for its output."""

    release: Release
    folder: Path
    processes: int

    def images(self) -> list[str]:
        """All images that its specs name."""
        return self._ask("--list-images").split()

    def specs(self) -> list[Spec]:
        """List all specs without running them."""
        with tempfile.TemporaryDirectory(prefix="specs-", dir=self.folder) as place:
            report = Path(place) / "report.json"
            self._ask("--ginkgo.dry-run", f"--ginkgo.json-report={report}", "--kubeconfig=", "--provider=skeleton")
            return read_report(json.loads(report.read_text()))

    def run(
        self,
        names: Sequence[str],
        target: Target,
        label: str,
        *,
        processes: int,
        seconds: float,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> list[Spec]:
        """Run these specs; `on_progress` gets the number of finished ones. Output is in a subfolder named `label`."""
        place = self.folder / label
        place.mkdir(parents=True, exist_ok=True)
        report = place / "report.json"
        report.unlink(missing_ok=True)
        command = [
            str(self.release.programs["ginkgo"]), f"--procs={processes}", "--no-color",
            f"--timeout={seconds:.0f}s", f"--focus={pattern(names)}", f"--output-dir={place}",
            "--json-report=report.json", str(self.release.programs["e2e.test"]), "--",
            f"--kubeconfig={target.kubeconfig}", f"--kubectl-path={target.kubectl}", "--provider=skeleton",
            f"--num-nodes={target.nodes}", "--disable-log-dump", f"--e2e-output-dir={place}",
            f"--allowed-not-ready-nodes={-1 if target.loses_nodes else 0}",
        ]  # fmt: skip
        with (
            (place / "output.log").open("wb") as log,
            subprocess.Popen(
                command,
                cwd=place,
                env=_environment(place / SCRATCH),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
            ) as running,
        ):
            assert running.stdout
            ended = 0
            try:
                while piece := os.read(running.stdout.fileno(), 65536):
                    log.write(piece)
                    log.flush()
                    ended += piece.count(DOT)
                    on_progress(ended)
            except BaseException:
                os.killpg(running.pid, signal.SIGTERM)
                raise
        return read_report(json.loads(report.read_text())) if report.exists() else []

    def _ask(self, *words: str) -> str:
        command = [str(self.release.programs["e2e.test"]), *words]
        ran = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_LIST,
            env=_environment(self.folder / SCRATCH),
            cwd=self.folder,
        )
        assert ran.returncode == 0, f"{' '.join(command)}: {(ran.stderr or ran.stdout)[-1000:]}"
        return ran.stdout


def _environment(scratch: Path) -> dict[str, str]:
    """The suite leaves temporary files behind, so TMPDIR is a folder of ours."""
    scratch.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "TMPDIR": str(scratch)}
