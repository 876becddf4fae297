"""Runs inside fresh mount, network and PID namespaces: start etcd on its file, look at it, say what was seen as JSON.

Everything it mounts and starts ends with the namespaces.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

PKI = Path("/srv/kubernetes")
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING


def main(work: Path, binary: Path, host: str) -> None:
    shutil.copy(binary, work / "etcd-binary")  # first: what is mounted may hide it
    prepare(work, host)
    (work / "etcd-binary").chmod(0o755)
    with (work / "etcd.log").open("wb") as log:
        environment = {"ETCD_CONFIG_FILE": str(work / "etcd.yaml")}
        etcd = subprocess.Popen([work / "etcd-binary"], env=environment, stdout=log, stderr=log)
        seen = {"health": healthy()}
        seen["with certificate"], seen["version"] = ask(host, "kube-apiserver-etcd-client")
        seen["without certificate"], _ = ask(host, None)
        seen["with a peer certificate"], _ = ask(host, "etcd-a-peer")
        etcd.terminate()
        etcd.wait(10)
    sys.stdout.write(json.dumps(seen))


def prepare(work: Path, host: str) -> None:
    """The paths and names that stand in the file, for nobody but us."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP_AND_RUNNING))
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    (work / "hosts").write_text(f"127.0.0.1 localhost {host}\n")
    subprocess.run(["mount", "--bind", work / "hosts", "/etc/hosts"], check=True)
    for directory in ("/srv", "/var"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
    shutil.copytree(work / "pki", PKI)
    Path("/var/etcd").mkdir(mode=0o700)


def healthy() -> str:
    """What the port for probes says, once it says anything good."""
    answer = ""
    for _ in range(150):
        try:
            with urllib.request.urlopen("http://127.0.0.1:2390/health", timeout=5) as page:
                answer = str(json.load(page)["health"])
        except (urllib.error.URLError, ConnectionError):
            answer = "no answer"
        if answer == "true":
            break
        time.sleep(0.1)
    return answer


def ask(host: str, certificate: str | None) -> tuple[str, str]:
    """Whether etcd answers over TLS to this certificate, and its version if so."""
    context = ssl.create_default_context(cafile=PKI / "etcd-client-ca.crt")
    if certificate:
        context.load_cert_chain(PKI / f"{certificate}.crt", PKI / f"{certificate}.key")
    try:
        with urllib.request.urlopen(f"https://{host}:4001/version", timeout=5, context=context) as page:
            return "answered", str(json.load(page)["etcdserver"])
    except OSError:
        return "refused", ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
