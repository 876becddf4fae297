"""The script of a cloud-init document, run by a real shell on paths of a test."""

from __future__ import annotations

import hashlib
import stat
import subprocess
import tarfile
from pathlib import Path

import yaml

from builders.nodeup import DEBIAN, OURS
from builders.nodeup_image import every_kind
from protokube.nodeup.cloudinit.document import document
from protokube.nodeup.order import order
from protokube.nodeup.values import Asset, Command, Directory, File, Gone, Installed, Link, Task

OWNER, GROUP = OURS


def script(folder: Path, *tasks: Task) -> str:
    tree = yaml.safe_load(document(order(tasks), DEBIAN, cache=str(folder / "cache")))
    assert tree["runcmd"][0][:2] == ["sh", "-euc"]
    return str(tree["runcmd"][0][2])


def run(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-euc", text], capture_output=True, text=True, timeout=120)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_makes_what_the_tasks_say(tmp_path: Path) -> None:
    at = f"{tmp_path}/it's here"
    (tmp_path / "bin").mkdir()
    for name in ("bridge", "loopback"):
        (tmp_path / "bin" / name).write_text(name)
    with tarfile.open(tmp_path / "cni.tgz", "w:gz") as archive:
        archive.add(tmp_path / "bin", "bin")
    (tmp_path / "kubelet").write_bytes(b"program")
    (tmp_path / "wrong").write_bytes(b"wrong")
    archive_digest, program_digest = digest(tmp_path / "cni.tgz"), digest(tmp_path / "kubelet")
    mark = Command(name="mark", check=("test", "-e", f"{at}/mark"), run=("touch", f"{at}/mark"))
    text = script(
        tmp_path,
        mark,
        Directory(path=at, mode=0o710, owner=OWNER, group=GROUP),
        File(path=f"{at}/late", content=b"\x00\xff'", mode=0o640, owner=OWNER, group=GROUP, after=(mark.key,)),
        File(path=f"{at}/kept", content=b"new", keep=True, owner=OWNER, group=GROUP),
        Link(path=f"{at}/link", target="some where"),
        Gone(path=f"{at}/old"),
        Asset(name="kubelet", sha256=program_digest, urls=(f"file://{tmp_path}/wrong", f"file://{tmp_path}/kubelet")),
        Asset(name="cni", sha256=archive_digest, urls=(f"file://{tmp_path}/none", f"file://{tmp_path}/cni.tgz")),
        Installed(asset="kubelet", path=f"{at}/sbin/kubelet"),
        Installed(asset="cni", path=f"{at}/cni", member="bin/*"),
        Installed(asset="cni", path=f"{at}/one", member="bin/bridge", mode=0o700),
    )
    folder = Path(at)
    folder.mkdir()
    (folder / "old").write_bytes(b"x")
    (folder / "kept").write_bytes(b"theirs")

    for _ in range(2):
        done = run(text)
        assert done.returncode == 0, done.stderr

    modes = {
        name: f"{stat.S_IMODE((folder / name).stat().st_mode):o}"
        for name in (".", "late", "sbin/kubelet", "one", "cni/bridge")
    }
    assert modes == {".": "710", "late": "640", "sbin/kubelet": "755", "one": "700", "cni/bridge": "755"}
    assert (folder / "late").read_bytes() == b"\x00\xff'"
    assert (folder / "kept").read_bytes() == b"theirs"
    assert (folder / "link").readlink() == Path("some where")
    assert (folder / "mark").exists()
    assert sorted(each.name for each in (folder / "cni").iterdir()) == ["bridge", "loopback"]
    assert not (folder / "old").exists()
    assert "kubelet: wrong digest from file://" in done.stderr


def test_it_stops_at_an_asset_that_no_source_has(tmp_path: Path) -> None:
    (tmp_path / "wrong").write_bytes(b"wrong")
    done = run(
        script(
            tmp_path,
            Asset(name="kubelet", sha256="0" * 64, urls=(f"file://{tmp_path}/wrong",)),
            Installed(asset="kubelet", path=f"{tmp_path}/kubelet"),
        )
    )

    assert done.returncode != 0
    assert not (tmp_path / "kubelet").exists()


def test_the_script_of_every_kind_is_one_that_a_shell_reads(tmp_path: Path) -> None:
    checked = subprocess.run(["sh", "-n"], input=script(tmp_path, *every_kind()), capture_output=True, text=True)

    assert (checked.returncode, checked.stderr) == (0, "")
