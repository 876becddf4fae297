"""`protokube bundle`: as a user calls it, with releases on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.assets import sha256
from builders.command import Call
from fakes import releases
from fakes.assets import serving
from fakes.mirror import dead_url
from fakes.releases import content
from protokube.config.complete import Config, complete
from protokube.errors import ExitCode
from protokube.launch.published import Wanted, image_names
from protokube.nodeup.assets.bundle import open_bundle, verify
from protokube.spec.parse import read

SPEC = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata:
  name: dev.example.com
spec:
  cloud: aws
  zones: [us-east-1a]
  kubernetesVersion: 1.34.1
"""
UNRELEASED = ("pause", "coredns", "etcd", "dns-controller")
"""Components whose images are no part of a release."""


@pytest.fixture(scope="module")
def config() -> Config:
    return complete(read([("spec.yaml", SPEC)]))


@pytest.fixture(scope="module")
def release(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[Wanted]]]:
    folder = tmp_path_factory.mktemp("releases")
    files = releases.put_all(folder, config)
    with serving(folder) as url:
        yield url, files


class World:
    def __init__(self, folder: Path, config: Config, url: str) -> None:
        self.folder, self.target = folder, folder / "rack.bundle"
        (folder / "spec.yaml").write_text(SPEC)
        self.archives: list[str] = []
        for component, name in image_names(config, master=True).items():
            if component in UNRELEASED:
                (folder / f"{component}.tar").write_bytes(component.encode() * 100)
                self.archives += ["--image", f"{name}={folder}/{component}.tar"]
        self.common = [str(folder / "spec.yaml"), "--cache", str(folder / "cache"), "--processor", "x86_64"]
        self.releases = releases.options(url)

    def words(self, *more: str) -> list[str]:
        return ["bundle", *self.common, *self.releases, *self.archives, *more]


@pytest.fixture
def world(tmp_path: Path, config: Config, release: tuple[str, list[Wanted]]) -> World:
    return World(tmp_path, config, release[0])


def test_all_that_a_master_needs_is_in_it_with_the_digests_of_the_releases(
    call: Call, world: World, release: tuple[str, list[Wanted]]
) -> None:
    answer = call(*world.words("--file", str(world.target)))

    assert answer.code == ExitCode.OK, answer.err
    bundle = open_bundle(world.target)
    verify(bundle, lambda _: None)
    found = {each.name: each.sha256 for each in bundle.entries}
    assert found == {
        **{each.published.asset: sha256(content(each)) for each in release[1]},
        **{f"{each}.tar": sha256(each.encode() * 100) for each in UNRELEASED if f"{each}.tar" in found},
    }
    assert {"kubelet", "containerd", "runc", "cni-plugins", "crictl", "kube-apiserver.tar", "etcd.tar"} <= set(found)
    assert answer.out.splitlines()[-1].endswith(f" in {world.target}: dev.example.com, Master, x86_64")


def test_made_again_it_has_the_same_bytes_and_downloads_nothing(call: Call, world: World) -> None:
    call(*world.words("--file", str(world.target)))
    first = world.target.read_bytes()

    call(*world.words("--file", str(world.target)))

    assert world.target.read_bytes() == first


def test_a_node_gets_no_control_plane(call: Call, world: World, config: Config) -> None:
    names = image_names(config, master=False)
    few = [(names[each], world.folder / f"{each}.tar") for each in ("pause", "coredns")]
    world.archives = [word for name, file in few for word in ("--image", f"{name}={file}")]

    answer = call(*world.words("--role", "Node", "--dry-run", "-o", "json"))

    found = {each["name"] for each in json.loads(answer.out)["assets"]}
    assert {"kubelet", "kube-proxy.tar", "pause.tar"} <= found
    assert not found & {"kube-apiserver.tar", "kube-scheduler.tar", "etcd.tar"}


def test_a_dry_run_lists_sizes_and_sources_and_downloads_nothing(call: Call, world: World) -> None:
    answer = call(*world.words("--dry-run"))

    assert answer.code == ExitCode.OK, answer.err
    kubelet = next(line for line in answer.out.splitlines() if line.startswith("kubelet "))
    assert " 73 KiB " in kubelet
    assert kubelet.endswith("/kubernetes/v1.34.1/bin/linux/amd64/kubelet")
    assert not (world.folder / "cache" / "assets").exists()
    assert not world.target.exists()


def test_a_mirror_is_asked_first_and_its_checksums_are_not_believed(
    call: Call, world: World, tmp_path: Path, config: Config, release: tuple[str, list[Wanted]]
) -> None:
    lying = tmp_path / "lying"
    for each in releases.put_all(lying, config):
        place = lying / each.published.project / each.published.place(each.version, "amd64")
        place.write_bytes(b"wrong")
        place.with_name(f"{place.name}.sha256").write_text(sha256(b"wrong"))
    with serving(lying) as url:
        answer = call(*world.words("--file", str(world.target), "--mirror", f"kubernetes={url}/kubernetes"))
        assert answer.code == ExitCode.OK, answer.err
        listed = call(*world.words("--dry-run", "-o", "json", "--mirror", f"kubernetes={url}/kubernetes"))

    found = {each.name: each.sha256 for each in open_bundle(world.target).entries}
    kubelet = next(each for each in release[1] if each.published.asset == "kubelet")
    assert found["kubelet"] == sha256(content(kubelet))
    assert next(each for each in json.loads(listed.out)["assets"] if each["name"] == "kubelet")["from"].startswith(url)


def test_without_the_release_there_is_no_checksum_whatever_mirrors_there_are(
    call: Call, world: World, release: tuple[str, list[Wanted]]
) -> None:
    mirror = f"kubernetes={release[0]}/kubernetes"
    answer = call(*world.words("--dry-run", "--mirror", mirror, "--release", f"kubernetes={dead_url()}"))

    assert answer.code == ExitCode.TRY_LATER
    assert "error: cannot learn the checksum of kubelet 1.34.1" in answer.err


def test_an_image_without_an_archive_is_named(call: Call, world: World, config: Config) -> None:
    world.archives = world.archives[2:]

    answer = call(*world.words("--dry-run"))

    assert answer.code == ExitCode.REFUSED
    assert "error: there is no archive of some images" in answer.err
    assert "hint: name one: --image " in answer.err


def test_a_bundle_is_checked_and_a_damaged_one_is_refused(call: Call, world: World) -> None:
    call(*world.words("--file", str(world.target)))

    good = call("bundle", "--check", str(world.target), "-o", "json")
    data = bytearray(world.target.read_bytes())
    entry = open_bundle(world.target).entries[0]
    data[entry.offset] ^= 1
    world.target.write_bytes(bytes(data))
    bad = call("bundle", "--check", str(world.target))

    assert good.code == ExitCode.OK
    assert json.loads(good.out)["about"] == "dev.example.com, Master, x86_64"
    assert bad.code == ExitCode.REFUSED
    assert f"error: {world.target} is not a whole bundle" in bad.err
    assert f"the sha256 of {entry.name} is " in bad.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["bundle"], "a bundle needs a spec, and a file"),
        (["bundle", "--check", "x", "--dry-run"], "--check reads a bundle, and takes nothing else"),
        (["bundle", "spec.yaml", "--dry-run", "--mirror", "x"], "--mirror 'x' has no two parts"),
        (["bundle", "spec.yaml", "--dry-run", "--image", "=x"], "--image '=x' has no two parts"),
        (["bundle", "spec.yaml", "--dry-run", "--image", "web=x"], "no machine of this role runs web"),
        (
            ["bundle", "spec.yaml", "--dry-run", "--release", "helm=https://x.example.com"],
            "there is no project 'helm' to download from",
        ),
        (["bundle", "spec.yaml", "--dry-run", "--release", "runc=/media"], "'/media' is not a URL to download from"),
        (
            ["bundle", "spec.yaml", "--dry-run", "--release", "runc=https://user:geheim@x.example.com"],
            "the URL of a place with runc has a user or a password in it",
        ),
    ],
)
def test_what_cannot_be_meant_is_told(
    call: Call, world: World, monkeypatch: pytest.MonkeyPatch, words: list[str], error: str
) -> None:
    monkeypatch.chdir(world.folder)
    extra = ["--cache", str(world.folder / "cache")] if "spec.yaml" in words else []
    more = world.archives if "--release" in words else []

    answer = call(*words, *extra, *more)

    assert answer.code == ExitCode.INVALID
    assert f"error: {error}" in answer.err
    assert "geheim" not in answer.err


def test_a_place_that_cannot_be_written_is_one_sentence(call: Call, world: World) -> None:
    answer = call(*world.words("--file", "/dev/full/rack.bundle"))

    assert answer.code == ExitCode.REFUSED
    assert "error: cannot write /dev/full/rack.bundle" in answer.err
