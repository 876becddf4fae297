"""Images of a machine, against a stand-in of containerd's client that keeps its images in a file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders.assets import a_file, a_machine, tree
from protokube.errors import Refused
from protokube.images import build, kept
from protokube.images.names import normalise
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.tasks import image
from protokube.nodeup.values import Image

PAUSE = "registry.k8s.io/pause:3.9"
CTR = """#!{python}
import hashlib, json, sys, tarfile
from pathlib import Path
state = Path({state!r})
images = json.loads(state.read_text())
words = sys.argv[1:]
with Path({log!r}).open("a") as log:
    log.write(" ".join(words) + "\\n")
if not images.pop("running", True):
    sys.exit("ctr: failed to dial /run/containerd/containerd.sock: no such file or directory")
words = words[words.index("images"):]
if words[:2] == ["images", "list"]:
    if "--quiet" in words:
        print("\\n".join(images))
    else:
        print("REF TYPE DIGEST SIZE PLATFORMS LABELS")
        for name, (digest, labels) in images.items():
            if words[2:] in ([], [f"name=={{name}}"]):
                print(name, "application/x", digest, "1.0", "MiB", "linux/amd64", ",".join(labels) or "-")
elif words[:3] == ["images", "import", "--help"]:
    print("--digests", {help!r})
elif words[:2] == ["images", "import"]:
    labels = [words[words.index("--label") + 1]] if "--label" in words else []
    with tarfile.open(words[-1]) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))
    digest = "sha256:" + hashlib.sha256(Path(words[-1]).read_bytes()).hexdigest()
    for name in manifest[0]["RepoTags"]:
        images[name] = [digest, labels]
elif words[:2] == ["images", "tag"]:
    images[words[4]] = images[words[3]]
elif words[:2] == ["images", "label"]:
    key, _, value = words[3].partition("=")
    images[words[2]][1] = [each for each in images[words[2]][1] if not each.startswith(key + "=")]
    images[words[2]][1] += [words[3]] if value else []
else:
    sys.exit(f"ctr: unknown {{words}}")
state.write_text(json.dumps(images))
"""


class Containerd:
    """The stand-in: what it holds, and what it was asked."""

    def __init__(self, folder: Path, version: str, *, labels: bool) -> None:
        self.state, self.log, self.folder = folder / "images.json", folder / "log", folder
        folder.mkdir()
        self.state.write_text("{}")
        text = CTR.format(python=sys.executable, state=str(self.state), log=str(self.log), help="--label" * labels)
        for name, content in (
            ("ctr", text),
            ("containerd", f"#!/bin/sh\necho containerd x/containerd {version} abc\n"),
        ):
            (folder / name).write_text(content)
            (folder / name).chmod(0o755)

    def run(
        self, words: Sequence[str], *, seconds: float = 0, environment: dict[str, str] | None = None,
        say: Say | None = None,
    ) -> Ran:  # fmt: skip
        ran = subprocess.run(
            [str(self.folder / words[0]), *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return Ran(ran.returncode, ran.stdout)

    @property
    def images(self) -> dict[str, list[object]]:
        found: dict[str, list[object]] = json.loads(self.state.read_text())
        return found


def archive_of(name: str, folder: Path, content: str = "pause") -> bytes:
    program = folder / "program"
    program.write_text(content)
    return build.archive(build.Image(name=name, files={"/pause": program}))


def a_world(
    tmp_path: Path, version: str = "1.7.24", *, labels: bool = True, data: bytes = b""
) -> tuple[Machine, Containerd]:
    containerd = Containerd(tmp_path / f"containerd-{version}", version, labels=labels)
    asset = a_file(tmp_path / "pause.tar", data or archive_of(PAUSE, tmp_path), "pause.tar")
    plain = a_machine(tmp_path / "root", asset, run=containerd.run)
    cache = f"{tmp_path}/root/var/cache/nodeup"
    machine = Machine(facts=plain.facts, run=plain.run, root=Path("/"), cache=cache, assets=plain.assets)
    return machine, containerd


WANTED = Image(name=PAUSE, asset="pause.tar")


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """Records of this test's machine."""
    return tmp_path / "root/var/cache/nodeup/images"


def quiet(_: str) -> None:
    """Nobody listens."""


def apply(machine: Machine, wanted: Image = WANTED) -> None:
    if changes := image.look(wanted, machine):
        image.apply(wanted, changes, machine, quiet)
    assert image.look(wanted, machine) == ()


def test_an_image_is_imported_pinned_and_a_second_run_writes_nothing(tmp_path: Path) -> None:
    machine, containerd = a_world(tmp_path)
    assert [each.what for each in image.look(WANTED, machine)] == ["archive"]
    assert containerd.images == {}

    apply(machine)

    assert containerd.images[PAUSE][1] == [kept.PINNED]
    before = tree(tmp_path / "root")
    apply(machine)
    assert tree(tmp_path / "root") == before


@pytest.mark.parametrize(("version", "labels"), [("1.6.20~ds1", False), ("1.7.2", True)])
def test_an_older_containerd_imports_without_the_label_and_the_archive_stays(
    tmp_path: Path, own_folder: Path, version: str, labels: bool
) -> None:
    machine, containerd = a_world(tmp_path, version, labels=labels)

    apply(machine)

    assert containerd.images[PAUSE][1] == []
    record = kept.read(own_folder, PAUSE)
    assert record
    assert not record.pinned
    assert Path(record.archive).is_file()


def test_a_client_that_sets_no_label_at_import_sets_it_afterwards(tmp_path: Path) -> None:
    """As that of 1.7.24."""
    machine, containerd = a_world(tmp_path, "1.7.24~ds1", labels=False)

    apply(machine)

    assert containerd.images[PAUSE][1] == [kept.PINNED]
    assert "--label" not in containerd.log.read_text()


def test_after_an_upgrade_of_containerd_it_is_imported_again_to_be_pinned(tmp_path: Path) -> None:
    machine, old = a_world(tmp_path, "1.6.20", labels=False)
    apply(machine)
    newer = Containerd(tmp_path / "newer", "1.7.24", labels=True)
    newer.state.write_text(old.state.read_text())
    after = replace(machine, run=newer.run)

    assert [str(each) for each in image.look(WANTED, after)] == ["pinned: imported by containerd 1.6.20 -> 1.7.24"]
    apply(after)
    assert newer.images[PAUSE][1] == [kept.PINNED]


def test_an_image_that_was_removed_is_a_change_and_comes_back(tmp_path: Path) -> None:
    machine, containerd = a_world(tmp_path)
    apply(machine)
    containerd.state.write_text("{}")

    assert [each.what for each in image.look(WANTED, machine)] == ["imported"]
    apply(machine)
    assert PAUSE in containerd.images


def test_another_image_under_its_name_is_replaced(tmp_path: Path) -> None:
    machine, containerd = a_world(tmp_path)
    apply(machine)
    digest = containerd.images[PAUSE][0]
    containerd.state.write_text(json.dumps({PAUSE: ["sha256:other", [kept.PINNED]]}))

    apply(machine)

    assert containerd.images[PAUSE][0] == digest


def test_an_archive_that_names_the_processor_too_is_tagged(tmp_path: Path) -> None:
    """As Kubernetes' releases do."""
    machine, containerd = a_world(tmp_path, data=archive_of("registry.k8s.io/pause-amd64:3.9", tmp_path))

    apply(machine)

    assert set(containerd.images) == {PAUSE, "registry.k8s.io/pause-amd64:3.9"}


def test_a_short_name_is_imported_under_the_name_that_the_kubelet_uses(tmp_path: Path) -> None:
    name = "pause:3.9"
    machine, containerd = a_world(tmp_path, data=archive_of(normalise(name), tmp_path))

    apply(machine, Image(name=name, asset="pause.tar"))

    assert list(containerd.images) == ["docker.io/library/pause:3.9"]


def test_while_containerd_does_not_run_it_is_a_change_with_the_reason(tmp_path: Path) -> None:
    machine, containerd = a_world(tmp_path)
    apply(machine)
    containerd.state.write_text(json.dumps({"running": False}))

    (change,) = image.look(WANTED, machine)

    assert change.what == "imported"
    assert "failed to dial /run/containerd/containerd.sock" in change.saw


def test_a_damaged_archive_is_refused_before_containerd_sees_it(tmp_path: Path) -> None:
    machine, containerd = a_world(tmp_path, data=b"no archive" * 100)

    with pytest.raises(Refused) as raised:
        apply(machine)

    assert raised.value.message == f"pause.tar cannot be imported as {PAUSE}"
    assert containerd.images == {}


def test_in_the_root_of_an_image_the_archive_is_kept_for_the_first_boot(tmp_path: Path) -> None:
    machine, containerd = a_world(tmp_path)
    root = a_machine(tmp_path / "image", *machine.assets.values())

    apply(root)

    record = kept.read(tmp_path / "image/var/cache/protokube/nodeup/images", PAUSE)
    assert record
    assert record.image == ""
    assert (tmp_path / f"image{record.archive}").is_file()

    booted = replace(machine, cache=str(tmp_path / "image/var/cache/protokube/nodeup"))
    assert [str(each) for each in image.look(WANTED, booted)] == ["imported: no -> yes"]
    apply(booted)
    assert PAUSE in containerd.images
