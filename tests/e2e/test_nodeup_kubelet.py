"""The real kubelet reads the flags and the configuration that nodeup writes for a machine of a rack."""

from __future__ import annotations

import subprocess
from pathlib import Path

from builders.config import completed
from builders.setups import DEBIAN_12, derived, the_file
from protokube.binaries.kubernetes import find
from protokube.launch.files import flags_in
from protokube.local.bringup import CACHE
from protokube.nodeup.model.whole import tasks_of

SECONDS = 60.0
CONFIG = "/etc/kubernetes/config/kubelet.yaml"


def answer(place: Path, **settings: object) -> str:
    """What a kubelet with the files of a master says before it ends: there is no kubeconfig here, so it always does."""
    found = find(None, CACHE)
    assert found is not None, "scripts/kubernetes brings Kubernetes here"
    config = completed(cloud="metal", kubernetesVersion=found.version, kubelet=dict(settings))
    tasks = tasks_of(derived(config, node_name="rack-1-a", address="127.0.0.1").setup, DEBIAN_12)
    file = place / "kubelet.yaml"
    text = the_file(tasks, CONFIG).content.decode()
    file.write_text(text.replace("/srv/kubernetes", f"{place}/pki").replace("/etc/kubernetes", f"{place}/etc"))
    flags = flags_in(the_file(tasks, "/etc/default/kubelet").content.decode())
    flags += ["--hostname-override=rack-1-a", "--node-ip=127.0.0.1"]
    words = [each.replace(CONFIG, str(file)).replace("/var/lib/kubelet", f"{place}/lib") for each in flags]
    program = found.folder / "kubelet"
    ran = subprocess.run(
        ["unshare", "--mount", "--net", str(program), *words, f"--root-dir={place}/lib"],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert ran.returncode != 0
    return ran.stderr


def test_it_accepts_every_flag_and_entry_and_then_misses_its_kubeconfig(tmp_path: Path) -> None:
    said = answer(tmp_path, failCgroupV1=False, failSwapOn=False, cgroupDriver="cgroupfs")

    assert f"unable to load kubeconfig: stat {tmp_path}/lib/kubeconfig: no such file" in said, said[-2000:]
