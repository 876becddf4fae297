"""A component that is broken into gives away its own keys and nobody else's: whatever it can read, on every version."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.agent import a_round
from builders.config import completed
from clusters.scenario.edges import FakeClock, HostClock
from protokube import fast_yaml
from protokube.agent.controlplane import components, key_folders
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.cli.wiring import machine_keys
from protokube.config.places import DIRECTORY, own_folder
from protokube.launch.derive import from_config
from protokube.launch.machine import FileText, MasterConfig
from protokube.launch.prepare import ensure_authorities
from protokube.manifests.component import reads
from protokube.spec.version import NEWEST_PATCH
from protokube.store.memory import MemoryStore

VERSIONS = [f"{series}.{patch}" for series, patch in NEWEST_PATCH.items()]
MANIFESTS = "etc/kubernetes/manifests"
SECRETS = {"encryption": b"the key of all secrets", "dns-update-key": b"the key of the zone"}
OWN = {
    "kube-apiserver": {
        "encryption", "front-proxy-client.key", "kube-apiserver-etcd-client.key", "kube-apiserver-kubelet-client.key",
        "kube-apiserver.key", "service-account.key",
    },
    "kube-controller-manager": {"ca.key", "kube-controller-manager.key", "service-account.key"},
    "kube-scheduler": {"kube-scheduler.key"},
    "kube-proxy": {"kube-proxy.key"},
    "dns-controller": {"dns-controller.key", "dns-update-key"},
}  # fmt: skip


class Master:
    """One on which everything was written, by real keys of a real store."""

    def __init__(self, root: Path, wanted: MasterConfig) -> None:
        self.root, self.wanted, self.clock = root, wanted, FakeClock()
        store = MemoryStore(f"memory://{root}")
        ensure_authorities(store, wanted)
        for name, content in SECRETS.items():
            store.create(f"{wanted.cluster}/secrets/{name}", content)
        clock = HostClock(self.clock)
        keys = machine_keys(store, wanted, self.inside(DIRECTORY), clock)
        keys.sync(sorted(wanted.certificates))  # those of etcd's members, too
        (root / MANIFESTS).mkdir(parents=True)
        (root / MANIFESTS / "kube-apiserver.manifest").write_text("of yesterday")
        self.round_ = a_round(root, wanted=wanted, store=store, keys=keys, clock=clock)

    def inside(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def round(self) -> Report:
        new = Round(edges=self.round_.edges, wanted=self.wanted, report=Report())
        components.sync(new)
        return new.report

    def secrets(self) -> dict[bytes, str]:
        """Every key of the machine and every secret of the store, by its content."""
        keys = {each.read_bytes(): each.name for each in self.inside(DIRECTORY).glob("*.key")}
        return keys | {content: name for name, content in SECRETS.items()}

    def seen_by(self, manifest: Path) -> list[Path]:
        volumes = fast_yaml.load(manifest.read_text())["spec"]["volumes"]
        folders = [self.inside(each["hostPath"]["path"]) for each in volumes]
        return [file for folder in folders for file in folder.rglob("*") if file.is_file()]

    def shown(self) -> dict[str, set[str]]:
        """By component: the keys and secrets in all the files that it can read."""
        secrets = self.secrets()
        return {
            manifest.stem: {
                name
                for file in self.seen_by(manifest)
                for content, name in secrets.items()
                if content in file.read_bytes()
            }
            for manifest in (self.root / MANIFESTS).iterdir()
        }


def wanted_of(**fields: Any) -> MasterConfig:
    return from_config(completed(cloud="local", masters=3, name="laptop", encryptionConfig=True, **fields), nodes=True)


@pytest.fixture
def master(tmp_path: Path) -> Master:
    made = Master(tmp_path, wanted_of())
    made.round()
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_a_component_can_read_its_own_keys_and_no_others(version: str, tmp_path: Path) -> None:
    master = Master(tmp_path, wanted_of(kubernetesVersion=version))
    master.round()
    assert master.shown() == OWN


@pytest.mark.parametrize("cloud", [{"cloud": "aws"}, {"cloud": "gce"}, {"cloud": "metal"}])
def test_it_is_so_on_every_cloud(cloud: dict[str, Any], tmp_path: Path) -> None:
    wanted = from_config(completed(**cloud, encryptionConfig=True))
    master = Master(tmp_path, wanted)
    master.round()
    others = {"dns-controller": OWN["dns-controller"] - {"dns-update-key"}} if cloud["cloud"] == "aws" else {}
    plain = {name: own for name, own in OWN.items() if name != "dns-controller"}
    assert master.shown() == plain | others


def test_whatever_file_its_flags_and_its_kubeconfig_name_is_there(master: Master) -> None:
    for component in master.wanted.components:
        folder = master.inside(own_folder(component.name))
        for name in key_folders.uses(master.wanted, component):
            assert (folder / name).read_bytes() == (folder.parent / name).read_bytes()
        for path in reads(component):
            assert master.inside(path).exists(), path
    for path, user in master.wanted.kubeconfigs.items():
        kubeconfig = fast_yaml.load(master.inside(path).read_text())
        named = [
            *kubeconfig["users"][0]["user"].values(),
            kubeconfig["clusters"][0]["cluster"]["certificate-authority"],
        ]
        assert all(each.startswith(f"{own_folder(user)}/") for each in named)
        assert all(master.inside(each).exists() for each in named)


def test_folders_and_keys_are_closed_and_closed_again_if_somebody_opens_them(master: Master) -> None:
    folder = master.inside(own_folder("kube-scheduler"))
    key = folder / "kube-scheduler.key"
    folder.chmod(0o755)
    key.chmod(0o644)
    master.clock.advance(601)

    reported = [each.text for each in master.round().did]

    assert reported == [
        "kube-scheduler: others could look into its folder, no longer",
        "kube-scheduler/kube-scheduler.key: written",
    ]
    for component in master.wanted.components:
        folder = master.inside(own_folder(component.name))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for each in folder.iterdir():
            public = each.suffix in (".crt", ".pub") or str(each.relative_to(master.root)) in {
                path.lstrip("/") for path in component.files
            }
            assert stat.S_IMODE(each.stat().st_mode) == (0o644 if public else 0o600), each


def test_a_renewed_certificate_is_in_the_folder_within_the_same_round(tmp_path: Path) -> None:
    life = 3600.0
    master = Master(tmp_path, replace(wanted_of(), certificate_lifetime=life))
    master.round()
    own, kept = (master.inside(f"{folder}/kube-scheduler.crt") for folder in (own_folder("kube-scheduler"), DIRECTORY))
    renewed = 0
    for _ in range(40):
        before = kept.read_bytes()
        master.clock.advance(life / 40)
        master.round()
        renewed += kept.read_bytes() != before
        assert own.read_bytes() == kept.read_bytes()
    assert renewed >= 1


def test_a_round_in_which_nothing_changed_writes_nothing(master: Master) -> None:
    files = [each for each in master.inside(DIRECTORY).rglob("*") if each.is_file()]
    before = {each: each.stat().st_ino for each in files}
    master.clock.advance(601)
    assert master.round().did == []
    assert {each: each.stat().st_ino for each in master.inside(DIRECTORY).rglob("*") if each.is_file()} == before


def test_a_users_own_file_in_the_folder_of_a_component_stays(tmp_path: Path) -> None:
    path = f"{own_folder('kube-apiserver')}/audit.yaml"
    wanted = replace(wanted_of(), files={path: FileText(text="YQ==", mode=0o600)})
    master = Master(tmp_path, wanted)
    master.round()
    master.clock.advance(601)
    master.round()
    assert master.inside(path).read_bytes() == b"a"
