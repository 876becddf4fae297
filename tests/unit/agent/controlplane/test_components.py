"""The control plane beside etcd: written once etcd is served, whole or not at all, and never taken away again."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from builders.agent import a_round
from builders.config import completed
from clusters.scenario.edges import MemoryKeys
from protokube.agent import links
from protokube.agent.controlplane import components
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.errors import TryLater
from protokube.launch.derive import from_config
from protokube.launch.machine import FileText, MasterConfig
from protokube.store.memory import MemoryStore

MANIFESTS = "etc/kubernetes/manifests"
PARTS = ["kube-apiserver", "dns-controller", "kube-controller-manager", "kube-scheduler"]
NAMES = [f"{each}.manifest" for each in PARTS]
KEY = b'{"name": "protokube.laptop", "secret": "c2VjcmV0"}'


@pytest.fixture
def wanted() -> MasterConfig:
    return from_config(completed(cloud="local", masters=3, name="laptop"))


@pytest.fixture
def round_(tmp_path: Path, wanted: MasterConfig, request: pytest.FixtureRequest) -> Round:
    """A master on which etcd was served before: its manifests are there."""
    (tmp_path / MANIFESTS).mkdir(parents=True)
    (tmp_path / MANIFESTS / NAMES[0]).write_text("of yesterday")
    round_ = a_round(tmp_path, wanted=wanted)
    round_.edges.store = MemoryStore(request.node.name)
    round_.edges.store.create("laptop/secrets/dns-update-key", KEY)
    return round_


def again(round_: Round, wanted: MasterConfig | None = None) -> Report:
    new = Round(edges=round_.edges, wanted=wanted or round_.wanted, report=Report())
    components.sync(new)
    return new.report


def test_before_etcd_is_served_here_nothing_is_written(tmp_path: Path, wanted: MasterConfig) -> None:
    round_ = a_round(tmp_path, wanted=wanted)
    components.sync(round_)
    assert "once a member of etcd is served here" in round_.report.sentence()
    assert not (tmp_path / MANIFESTS).exists()


def test_without_kubernetes_there_is_nothing_to_do(tmp_path: Path, wanted: MasterConfig) -> None:
    round_ = a_round(tmp_path, wanted=replace(wanted, components=()))
    components.sync(round_)
    assert round_.report.sentence() == ""


def test_everything_is_there_after_one_round_and_the_next_one_touches_nothing(round_: Round, tmp_path: Path) -> None:
    assert len(again(round_).did) > 5
    assert sorted(each.name for each in (tmp_path / MANIFESTS).iterdir()) == sorted(NAMES)
    before = {each: (each.stat().st_ino, each.stat().st_mtime_ns) for each in tmp_path.rglob("*")}

    assert again(round_).did == []
    assert {each: (each.stat().st_ino, each.stat().st_mtime_ns) for each in tmp_path.rglob("*")} == before


def test_kubeconfigs_are_private_and_name_files_that_are_renewed(round_: Round, tmp_path: Path) -> None:
    again(round_)
    for path, user in round_.wanted.kubeconfigs.items():
        file = tmp_path / path.lstrip("/")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        kubeconfig = yaml.safe_load(file.read_text())
        assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:443"
        assert kubeconfig["users"][0]["user"] == {
            "client-certificate": f"/srv/kubernetes/{user}/{user}.crt",
            "client-key": f"/srv/kubernetes/{user}/{user}.key",
        }


def test_kube_proxy_goes_through_the_proxy_of_the_machine_where_there_is_one(tmp_path: Path) -> None:
    wanted = from_config(completed(cloud="local", masters=3, name="laptop"), nodes=True)
    with_proxy = replace(wanted, kubelet_api="https://127.0.0.1:3988", secret_files={})
    own = {components.server_of(wanted, user) for user in wanted.kubeconfigs.values()}
    assert own == {"https://127.0.0.1:443"}
    assert {user: components.server_of(with_proxy, user) for user in with_proxy.kubeconfigs.values()} == {
        "kube-controller-manager": "https://127.0.0.1:443",
        "kube-scheduler": "https://127.0.0.1:443",
        "dns-controller": "https://127.0.0.1:443",
        "kube-proxy": "https://127.0.0.1:3988",
    }
    (tmp_path / MANIFESTS).mkdir(parents=True)
    (tmp_path / MANIFESTS / NAMES[0]).write_text("of yesterday")
    again(a_round(tmp_path, wanted=with_proxy))
    (path,) = [path for path, user in wanted.kubeconfigs.items() if user == "kube-proxy"]
    kubeconfig = yaml.safe_load((tmp_path / path.lstrip("/")).read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:3988"


def test_a_file_of_the_spec_that_names_a_pod_of_ours_is_written_once_and_set_aside_never(
    round_: Round, wanted: MasterConfig, tmp_path: Path
) -> None:
    text = b"kind: Pod\nmetadata: {name: kube-scheduler, namespace: kube-system}\n"
    asset = FileText(text=b64encode(text).decode(), mode=0o644)
    with_file = replace(wanted, files={f"/{MANIFESTS}/kube-scheduler.yaml": asset})
    reports = [again(round_, with_file) for _ in range(5)]

    assert [len([each for each in report.did if "kube-scheduler.yaml" in each.text]) for report in reports] == [
        1, 0, 0, 0, 0,
    ]  # fmt: skip
    assert not (tmp_path / "var/lib/protokube/set-aside").exists()
    assert reports[-1].person[0].about == "kube-scheduler.yaml"


def test_certificates_of_members_are_not_asked_for_and_all_others_are(round_: Round) -> None:
    again(round_)
    keys = round_.edges.keys
    assert isinstance(keys, MemoryKeys)
    assert not any(name.startswith("etcd-") for name in keys.issued)
    assert {"kube-apiserver", "kube-scheduler", "front-proxy-client", "protokube", "shared"} <= keys.issued


def test_without_keys_no_manifest_is_written(round_: Round, tmp_path: Path) -> None:
    round_.edges.keys = MemoryKeys(failing="the store does not answer")
    with pytest.raises(TryLater):
        again(round_)
    assert (tmp_path / MANIFESTS / NAMES[0]).read_text() == "of yesterday"


def test_manifests_stay_when_the_volume_goes(round_: Round, tmp_path: Path) -> None:
    again(round_)
    assert round_.mounted == []  # nothing is mounted in any of these rounds
    assert sorted(each.name for each in (tmp_path / links.DIRECTORY.lstrip("/")).iterdir()) == sorted(NAMES)


def test_a_changed_component_is_written_anew_and_the_others_are_not(round_: Round, tmp_path: Path) -> None:
    again(round_)
    first, *others = round_.wanted.components
    changed = replace(round_.wanted, components=(replace(first, image="other:1"), *others))
    assert [(each.about, each.text) for each in again(round_, changed).did] == [("kube-apiserver", "manifest written")]
    assert "other:1" in (tmp_path / MANIFESTS / NAMES[0]).read_text()


def test_an_api_server_says_the_address_of_its_machine_unless_the_user_says_another(
    round_: Round, tmp_path: Path
) -> None:
    again(round_)
    assert "--advertise-address=10.0.0.1" in (tmp_path / MANIFESTS / NAMES[0]).read_text()
    first, *others = round_.wanted.components
    configured = replace(first, flags={**first.flags, "advertise-address": "192.0.2.1"})
    again(round_, replace(round_.wanted, components=(configured, *others)))
    assert "--advertise-address=192.0.2.1" in (tmp_path / MANIFESTS / NAMES[0]).read_text()


def test_a_secret_file_is_read_from_the_store_once_and_is_private(
    round_: Round, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = MemoryStore(request.node.name)
    store.create("laptop/secrets/encryption", b"key")
    round_.edges.store = store
    wanted = replace(round_.wanted, secret_files={"/srv/kubernetes/encryption.yaml": "encryption"})
    again(round_, wanted)
    file = tmp_path / "srv/kubernetes/encryption.yaml"
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"key", 0o600)


def test_the_key_of_the_dns_controller_comes_from_the_store_for_its_eyes_only(round_: Round, tmp_path: Path) -> None:
    again(round_)
    file = tmp_path / "srv/kubernetes/dns-controller/update.key"
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (KEY, 0o600)


def test_a_key_that_the_store_lacks_keeps_away_only_who_reads_it(
    round_: Round, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    round_.edges.store = MemoryStore(f"{request.node.name}-empty")
    report = again(round_)

    assert [(each.about, "no secret dns-update-key" in each.text) for each in report.waits] == [
        ("dns-controller", True)
    ]
    there = sorted(each.name for each in (tmp_path / MANIFESTS).iterdir())
    assert there == sorted(name for name in NAMES if not name.startswith("dns-"))


def test_a_file_of_the_users_has_exactly_its_content_and_mode(round_: Round, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        again(round_, replace(round_.wanted, files={"/etc/own/file": FileText(text="AAH/", mode=0o644)}))
    finally:
        os.umask(old)
    file = tmp_path / "etc/own/file"
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"\x00\x01\xff", 0o644)


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("/etc/../../outside", "", "is no place for a file"),
        ("/etc", "eA==", "cannot be written: [Errno 21] Is a directory"),
        (f"/{MANIFESTS}/kube-apiserver.manifest/x", "eA==", "cannot be written: [Errno 17] File exists"),
        ("/etc/own/bad", "no base64!", "cannot be written: "),
        ("/etc/own/bad", "Y", "cannot be written: "),
    ],
)
def test_a_file_of_the_users_that_cannot_be_written_is_told_and_keeps_nothing_else_back(
    round_: Round, tmp_path: Path, path: str, text: str, problem: str
) -> None:
    bad, good = FileText(text=text, mode=0o644), FileText(text="eA==", mode=0o644)
    report = again(round_, replace(round_.wanted, files={path: bad, "/etc/own/good": good}))

    assert [(each.step, each.about) for each in report.person] == [("components", path)]
    assert problem in report.person[0].text
    assert report.person[0].hint
    assert (tmp_path / "etc/own/good").read_text() == "x"
    assert sorted(each.name for each in (tmp_path / MANIFESTS).iterdir()) == sorted(NAMES)
    assert (tmp_path / MANIFESTS / NAMES[0]).read_text() != "of yesterday"
    assert not (tmp_path.parent / "outside").exists()


def test_a_disk_that_takes_no_file_of_the_users_is_waited_for(round_: Round, tmp_path: Path) -> None:
    name = "n" * 300  # longer than any file system takes: an error like that of a full disk
    report = again(round_, replace(round_.wanted, files={f"/etc/{name}": FileText(text="eA==", mode=0o644)}))

    assert [(each.about, each.text) for each in report.waits] == [
        (f"/etc/{name}", "cannot be written: File name too long")
    ]
    assert sorted(each.name for each in (tmp_path / MANIFESTS).iterdir()) == sorted(NAMES)


def test_a_file_of_the_masters_group_stands_instead_of_one_of_all_masters(round_: Round, tmp_path: Path) -> None:
    of_all = {"/etc/own/a": FileText(text="YQ==", mode=0o644), "/etc/own/b": FileText(text="YQ==", mode=0o644)}
    mine, others = ({f"/etc/own/{name}": FileText(text="Yg==", mode=0o600)} for name in "bc")
    group = round_.edges.me.group
    again(round_, replace(round_.wanted, files=of_all, group_files={group: mine, "another": others}))

    there = {each.name: each.read_text() for each in (tmp_path / "etc/own").iterdir()}
    assert there == {"a": "a", "b": "b"}
