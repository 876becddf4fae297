"""Assets on real disks that are full or read-only, in a namespace without routes, and images in a real containerd."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from builders.assets import DATA, a_file, a_machine, an_asset, of_files, sha256
from fakes.mirror import Mirror, serving
from protokube.binaries import executables
from protokube.binaries.product import CACHE
from protokube.errors import Refused
from protokube.images import build, kept
from protokube.images.ctr import Ctr
from protokube.nodeup.assets.bundle import write_bundle
from protokube.nodeup.assets.fetch import fetch
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.tasks import image, installed
from protokube.nodeup.values import Image, Installed

NAME = "registry.k8s.io/pause:3.9"


def quiet(_: str) -> None:
    """Nobody listens."""


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small file system in memory."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_in_one_sentence_and_the_next_run_goes_on(tmp_path: Path) -> None:
    source = Mirror(files={"/kubelet": DATA})
    with serving(source), mounted(tmp_path / "disk", "size=128k") as disk:
        asset = an_asset(DATA, f"{source.url}/kubelet", size=len(DATA))
        with pytest.raises(Refused) as raised:
            fetch(asset, disk, quiet)
        had = next(disk.iterdir()).stat().st_size
        subprocess.run(["mount", "-o", "remount,size=1m", str(disk)], check=True)
        assert fetch(asset, disk, quiet).read_bytes() == DATA

    assert raised.value.message == f"no room for kubelet in {disk}"
    assert raised.value.saw == f"No space left on device, after {had} of {len(DATA)} bytes"
    assert had > 64 * 1024
    assert [wanted for _, wanted in source.asked] == ["", f"bytes={had}-"]


def test_a_read_only_cache_is_told_in_one_sentence(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m,ro") as disk, pytest.raises(Refused) as raised:
        fetch(a_file(tmp_path / "kubelet"), disk / "cache", quiet)

    assert raised.value.message == f"cannot keep kubelet in {disk}/cache"
    assert raised.value.saw == f"Read-only file system: {disk}/cache"


def test_a_program_on_a_full_disk_leaves_the_former_one_and_no_draft(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    wanted = Installed(asset="kubelet", path="/bin/kubelet")
    (tmp_path / "root").mkdir()
    with mounted(tmp_path / "root/bin", "size=128k") as folder:
        (folder / "kubelet").write_bytes(b"former")
        with pytest.raises(Refused) as raised:
            installed.apply(wanted, (), machine, quiet)
        left = {each.name: each.read_bytes() for each in folder.iterdir()}

    assert left == {"kubelet": b"former"}
    assert raised.value.message == f"no room for {folder}/kubelet"
    assert raised.value.saw == "No space left on device"


def test_a_program_on_a_read_only_path_is_refused(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    (tmp_path / "root").mkdir()
    with mounted(tmp_path / "root/bin", "size=1m,ro"), pytest.raises(Refused) as raised:
        installed.apply(Installed(asset="kubelet", path="/bin/kubelet"), (), machine, quiet)

    assert raised.value.message == f"cannot write {tmp_path}/root/bin/kubelet"
    assert raised.value.saw == "Read-only file system"


OFFLINE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from builders.assets import a_machine
from protokube.nodeup.assets.bundle import first, open_bundle
from protokube.nodeup.tasks import installed
from protokube.nodeup.values import Asset, Installed
tasks = (Asset(name="cni", sha256=sys.argv[2], urls=("http://192.0.2.1/cni.tgz",)),)
machine = a_machine(Path(sys.argv[3]), *first(tasks, open_bundle(Path(sys.argv[1]))))
wanted = Installed(asset="cni", path="/opt/cni/bin", member="*")
installed.apply(wanted, installed.look(wanted, machine), machine, print)
"""


def test_without_any_route_a_bundle_gives_the_same_tree_as_a_mirror(tmp_path: Path) -> None:
    data = of_files({"./bridge": b"bridge" * 9_000, "./loopback": b"loopback"})
    asset = a_file(tmp_path / "cni.tgz", data, "cni")
    bundle = write_bundle(tmp_path / "rack.bundle", [(asset, tmp_path / "cni.tgz")], "rack", quiet)
    tests = str(Path(__file__).parents[1])

    offline = ["unshare", "--net", sys.executable, "-c", OFFLINE]
    words = [str(bundle.path), asset.sha256, str(tmp_path / "offline"), tests]
    subprocess.run([*offline, *words], check=True, capture_output=True)
    with serving(Mirror(files={"/cni.tgz": data})) as source:
        machine = a_machine(tmp_path / "online", an_asset(data, f"{source.url}/cni.tgz", name="cni"))
        installed.apply(Installed(asset="cni", path="/opt/cni/bin", member="*"), (), machine, quiet)

    trees = [
        {str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
         for path in root.rglob("*") if "records" not in path.parts}
        for root in (tmp_path / "offline", tmp_path / "online")
    ]  # fmt: skip
    assert trees[0] == trees[1]
    assert f"var/cache/protokube/nodeup/assets/sha256-{sha256(data)}" in trees[0]


class Containerd:
    """A real one with folders of its own, in a mount namespace of its own."""

    def __init__(self, folder: Path, sockets: str) -> None:
        self.programs = executables.unpack("containerd", CACHE) / "usr/bin"
        self.address = f"{sockets}/containerd.sock"
        config = folder / "config.toml"
        config.write_text(
            f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\n'
            f'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]\n'
            f"[grpc]\naddress = {json.dumps(self.address)}\n"
        )
        command = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", str(self.programs / "containerd")]
        self.process = subprocess.Popen(
            [*command, "--config", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.ctr = Ctr(command=(str(self.programs / "ctr"),), address=self.address)
        self.ctr.await_start(60, lambda: self.process.poll() is None)

    def run(
        self, words: Sequence[str], *, seconds: float = 60, environment: dict[str, str] | None = None,
        say: Say | None = None,
    ) -> Ran:  # fmt: skip
        address = ["--address", self.address] if words[0] == "ctr" else []
        ran = subprocess.run(
            [str(self.programs / words[0]), *address, *words[1:]],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds,
        )  # fmt: skip
        return Ran(ran.returncode, ran.stdout)


@pytest.fixture
def containerd(tmp_path: Path) -> Iterator[Containerd]:
    assert shutil.which("setpriv"), "these tests need util-linux"
    (tmp_path / "containerd").mkdir()
    with tempfile.TemporaryDirectory(prefix="sockets-") as sockets:  # paths of sockets are short: 107 bytes
        running = Containerd(tmp_path / "containerd", sockets)
        yield running
        running.process.terminate()
        running.process.wait(30)


def test_a_real_containerd_imports_an_image_once_and_again_after_it_was_removed(
    tmp_path: Path, containerd: Containerd
) -> None:
    (tmp_path / "program").write_text("pause")
    data = build.archive(build.Image(name="registry.k8s.io/pause-amd64:3.9", files={"/pause": tmp_path / "program"}))
    asset = a_file(tmp_path / "pause.tar", data, "pause.tar")
    facts = a_machine(tmp_path).facts
    machine = Machine(facts=facts, run=containerd.run, cache=str(tmp_path / "cache"), assets={"pause.tar": asset})
    wanted = Image(name=NAME, asset="pause.tar")

    assert [each.what for each in image.look(wanted, machine)] == ["archive"]
    image.apply(wanted, (), machine, quiet)
    assert image.look(wanted, machine) == ()

    record = kept.read(tmp_path / "cache/images", NAME)
    assert record
    containerd.ctr("images", "remove", NAME, seconds=60)
    assert [str(each) for each in image.look(wanted, machine)] == [f"imported: no -> {record.image}"]
    image.apply(wanted, (), machine, quiet)
    assert image.look(wanted, machine) == ()
