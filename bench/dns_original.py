"""The Go dns-controller of kops, to be measured beside ours: built from its Go module, and started as in a pod.

`PROTOKUBE_BENCH_ORIGINAL` names one that was built elsewhere. It knows only the service account of its pod, so it runs
in a mount namespace of its own, in which there is such an account.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

MODULE, VERSION, PACKAGE = "k8s.io/kops", "v1.36.0", "./dns-controller/cmd/dns-controller"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
BATCH = 400
"""Upserts in a request: its own default of 900 is refused, since Route 53 counts the values of an UPSERT twice."""
START = 'mount -t tmpfs none /run && mkdir -p "$1" && cp "$2"/* "$1" && shift 2 && exec "$@"'


def program() -> tuple[Path | None, str]:
    """The program, or the reason why there is none."""
    if named := os.environ.get("PROTOKUBE_BENCH_ORIGINAL"):
        path = Path(named)
        return (path, "") if os.access(path, os.X_OK) else (None, f"{path} cannot be run")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "protokube-bench" / f"kops-dns-controller-{VERSION}"
    if path.exists():
        return path, ""
    if shutil.which("go") is None:
        return None, "it is built by Go, which is not here; PROTOKUBE_BENCH_ORIGINAL names one that was built elsewhere"
    print(f"dns-controller: building the original, {MODULE} {VERSION}, once: some minutes", flush=True)
    try:
        _build(path)
    except subprocess.CalledProcessError as error:
        return None, f"it cannot be built: {(error.stderr or error.stdout or str(error)).strip()[-300:]}"
    return path, ""


def _build(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # the module's own go.mod and go.sum count only if its folder is the main module, so `go install` cannot be used
    fetched = _run(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], path.parent)
    made = path.with_suffix(".new")
    _run(["go", "build", "-trimpath", "-buildvcs=false", "-o", str(made), PACKAGE], Path(json.loads(fetched)["Dir"]))
    made.rename(path)


def _run(command: Sequence[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def account(folder: Path, ca: Path, token: str) -> Path:
    """The files of a service account, as the kubelet lays them down."""
    folder.mkdir()
    (folder / "ca.crt").write_bytes(ca.read_bytes())
    (folder / "token").write_text(token)
    (folder / "namespace").write_text("kube-system")
    return folder


def command(path: Path, login: Path, zone: str) -> list[str]:
    """Its namespace costs no process: what `unshare` and the shell start takes their place."""
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    words = [
        "--dns=aws-route53",
        f"--zone={zone}",
        "--watch-ingress=false",
        "--internal-ipv4",
        f"--route53-batch-size={BATCH}",
    ]
    return [*alone, "sh", "-c", START, "sh", ACCOUNT, str(login), str(path), *words]


def environment(server: str, endpoint: str) -> Mapping[str, str]:
    parts = urlsplit(server)
    return {
        "KUBERNETES_SERVICE_HOST": parts.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(parts.port),
        "AWS_ENDPOINT_URL_ROUTE_53": endpoint,
        "AWS_REGION": "us-east-1",
    }
