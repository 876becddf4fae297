"""What an agent is told: from the complete configuration to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.config import EXAMPLES, completed
from protokube.config.complete import complete
from protokube.errors import InvalidRequest
from protokube.launch.derive import from_config
from protokube.launch.machine import FIRST, VERSION, KubeletConfig, MasterConfig, from_tree, to_tree
from protokube.launch.revisions import decode_revision, digest_of
from protokube.manifests.certificate import CertificateWanted
from protokube.spec.parse import parse

LOCAL = next(each for each in EXAMPLES if each.name == "local.yaml")

A_CERTIFICATE = CertificateWanted(authority="kubernetes-ca", common_name="kube-proxy").to_tree()
DATA = Path(__file__).parent / "data"
"""Written by protokube before launch data had the versions of programs."""


def told_by(path: Any) -> MasterConfig:
    return from_config(complete(parse([(path.name, path.read_text())])))


def test_three_masters_on_one_machine_are_told_of_one_etcd_cluster_with_three_members() -> None:
    wanted = told_by(LOCAL)
    (etcd,) = wanted.etcd
    assert (wanted.cluster, etcd.key) == ("workbench", "main")
    assert (wanted.api_internal_name, wanted.api_public_name) == ("api.internal.workbench", "api.workbench")
    assert wanted.api_names == ("api.internal.workbench", "api.workbench")
    assert [each.short for each in etcd.members] == ["a", "b", "c"]
    member = etcd.members[1]
    assert member.name == "etcd-b"
    assert member.dns_name == "etcd-b.internal.workbench"
    assert member.peer_url == "https://etcd-b.internal.workbench:2380"
    assert member.client_url == "https://etcd-b.internal.workbench:4001"
    assert (member.group, member.zone, member.size) == ("master-b", "local", 2**30)
    assert etcd.pod.config_file == "/etc/kubernetes/config/etcd.yaml"
    assert etcd.pod.file_name == "etcd.manifest"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda each: each.stem)
def test_what_is_written_for_a_machine_is_read_back_whole(path: Any) -> None:
    wanted = told_by(path)
    assert from_tree(json.loads(json.dumps(to_tree(wanted)))) == wanted


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda each: each.stem)
def test_every_certificate_that_the_agent_asks_for_is_in_what_it_is_told(path: Any) -> None:
    wanted = told_by(path)
    needed = {f"{each.name}-{kind}" for etcd in wanted.etcd for each in etcd.members for kind in ("peer", "server")}
    assert needed | {"protokube-etcd-client"} <= wanted.certificates.keys()


def test_events_have_a_manifest_a_file_and_names_of_their_own() -> None:
    wanted = told_by(next(each for each in EXAMPLES if each.name == "minimal.yaml"))
    events = wanted.etcd_cluster("events")
    assert events is not None
    assert events.pod.file_name == "etcd-events.manifest"
    assert events.pod.name == "etcd-server-events"
    assert events.members[0].name.startswith("etcd-events-")
    assert wanted.etcd_cluster("other") is None
    assert events.member("nobody") is None


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"cluster": "x"},
        to_tree(told_by(LOCAL)) | {"colour": "red"},
        {key: value for key, value in to_tree(told_by(LOCAL)).items() if key != "certificates"},
        to_tree(told_by(LOCAL)) | {"etcd": [{"key": "main"}]},
        to_tree(told_by(LOCAL)) | {"pod_ranges": [{"network": "everywhere", "node_mask": 24}]},
        to_tree(told_by(LOCAL)) | {"pod_ranges": [{"network": "100.96.0.0/11"}]},
        to_tree(told_by(LOCAL)) | {"kubelets": {"master-a": {"colour": "red"}}},
        to_tree(told_by(LOCAL)) | {"version": "first"},
        to_tree(told_by(LOCAL)) | {"api_names": []},
        to_tree(told_by(LOCAL)) | {"api_names": ["a", "b", "c"]},
        to_tree(told_by(LOCAL)) | {"kubelets": 3},
        to_tree(told_by(LOCAL)) | {"certificates": {"kube-proxy": {"authority": "kubernetes-ca"}}},
        to_tree(told_by(LOCAL)) | {"certificates": {"kube-proxy": "kubernetes-ca"}},
        to_tree(told_by(LOCAL)) | {"certificates": {"kube-proxy": A_CERTIFICATE | {"colour": "red"}}},
    ],
)
def test_the_file_of_another_version_is_an_error_in_words(tree: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="this is not the configuration of a master"):
        from_tree(tree)


def test_a_value_can_be_changed_and_written_again() -> None:
    wanted = replace(told_by(LOCAL), cluster="other")
    assert from_tree(to_tree(wanted)).cluster == "other"


def test_how_long_certificates_live_and_what_else_has_a_key_is_told_in_seconds_and_by_name() -> None:
    wanted = told_by(LOCAL)
    assert wanted.certificate_lifetime == 365 * 86400
    assert wanted.key_pairs == ("service-account",)


def test_without_kubernetes_old_revisions_are_deleted_only_where_the_spec_says_so() -> None:
    def may_compact(more: str, *, kubernetes: bool) -> bool:
        text = LOCAL.read_text().replace("spec:\n", f"spec:\n  etcdClusters: [{{name: main{more}}}]\n", 1)
        return from_config(complete(parse([("spec.yaml", text)])), kubernetes=kubernetes).etcd[0].compact

    assert may_compact("", kubernetes=True)
    assert not may_compact("", kubernetes=False)
    assert may_compact(", maintenance: {compact: true}", kubernetes=False)
    assert not may_compact(", maintenance: {compact: false}", kubernetes=True)


def test_after_how_many_seconds_a_removed_member_rejoins_is_told_and_that_it_never_may() -> None:
    def after(more: str) -> float | None:
        text = LOCAL.read_text().replace("spec:\n", f"spec:\n  etcdClusters: [{{name: main{more}}}]\n", 1)
        return from_config(complete(parse([("spec.yaml", text)])), kubernetes=False).etcd[0].rejoin_removed_after

    assert after("") == 300
    assert after(", maintenance: {rejoinRemovedAfter: 90s}") == 90
    assert after(", maintenance: {rejoinRemoved: false}") is None


def test_launch_data_carry_the_pod_range_and_the_mask_of_one_node() -> None:
    text = LOCAL.read_text().replace("spec:\n", "spec:\n  kubeControllerManager: {nodeCIDRMaskSizeIPv4: 25}\n", 1)
    config = complete(parse([("spec.yaml", text)]))
    assert to_tree(from_config(config))["pod_ranges"] == [{"network": "100.96.0.0/11", "node_mask": 25}]
    assert from_config(config, kubernetes=False).pod_ranges == ()


def test_launch_data_without_pod_ranges_declare_none() -> None:
    tree = to_tree(told_by(LOCAL))
    del tree["pod_ranges"]
    assert from_tree(tree).pod_ranges == ()


def test_launch_data_of_a_newer_version_of_protokube_are_refused_by_that_name() -> None:
    tree = to_tree(told_by(LOCAL)) | {"version": VERSION + 1, "unknown": "field"}
    with pytest.raises(InvalidRequest, match="made by a newer version of protokube") as refused:
        from_tree(tree)
    assert refused.value.saw == "version 3 of its format; this protokube reads up to 2"


def test_launch_data_with_versions_of_programs_are_of_another_format_and_those_without_of_the_first() -> None:
    """So an earlier protokube says that a newer one made them, and does not complain about a field."""
    wanted = told_by(LOCAL)
    plain = without_versions(wanted)

    assert (to_tree(wanted)["version"], to_tree(plain)["version"]) == (VERSION, FIRST)
    for each in (
        replace(plain, kubernetes="1.36.4"),
        replace(plain, etcd=wanted.etcd),
        replace(plain, kubelets={"master-a": KubeletConfig(flags={}, files={}, version="1.36.4")}),
    ):
        assert to_tree(each)["version"] == VERSION
        assert from_tree(to_tree(each)) == each
        assert from_tree(to_tree(each) | {"version": FIRST}) == each, "as versions in between wrote it"


def test_launch_data_of_before_versions_of_programs_are_read_and_written_as_they_were() -> None:
    tree = json.loads((DATA / "launch-1.json").read_text())
    wanted = from_tree(tree)

    assert (wanted.kubernetes, {each.version for each in wanted.etcd}) == ("", {""})
    assert json.loads(json.dumps(to_tree(wanted))) == tree


def test_a_revision_of_before_versions_of_programs_is_read_and_has_the_same_digest() -> None:
    revision = decode_revision((DATA / "revision-1.json").read_bytes())

    assert (revision.number, revision.master.revision) == (3, 3)
    assert digest_of(revision.master) == revision.digest == json.loads((DATA / "revision-1.json").read_text())["digest"]
    assert digest_of(replace(revision.master, kubernetes="1.36.4")) != revision.digest


def without_versions(wanted: MasterConfig) -> MasterConfig:
    etcd = tuple(replace(each, version="") for each in wanted.etcd)
    kubelets = {group: replace(each, version="") for group, each in wanted.kubelets.items()}
    return replace(wanted, kubernetes="", etcd=etcd, kubelets=kubelets)


@pytest.mark.parametrize("field", ["version", "revision", "kubelets"])
def test_launch_data_of_before_a_field_existed_are_read(field: str) -> None:
    wanted = from_config(completed(cloud="local", masters=1), nodes=field != "kubelets")
    tree = to_tree(wanted)
    del tree[field]
    assert from_tree(tree) == wanted


@pytest.mark.parametrize("public", ["api.workbench", "api.internal.workbench"])
def test_the_names_of_the_api_are_one_list_on_the_wire_as_in_earlier_versions(public: str) -> None:
    wanted = replace(told_by(LOCAL), api_public_name=public)
    tree = json.loads(json.dumps(to_tree(wanted)))
    assert tree["api_names"] == list(dict.fromkeys(["api.internal.workbench", public]))
    assert not {"api_internal_name", "api_public_name"} & tree.keys()
    assert from_tree(tree) == wanted


def test_certificates_are_on_the_wire_as_in_the_configuration() -> None:
    config = completed(cloud="local", masters=1)
    tree = json.loads(json.dumps(to_tree(from_config(config))))
    assert tree["certificates"] == config.cluster["pki"]["certificates"]
    assert [list(each) for each in tree["certificates"].values()] == [
        list(each) for each in config.cluster["pki"]["certificates"].values()
    ]


def test_the_revision_of_the_store_is_kept() -> None:
    wanted = replace(told_by(LOCAL), revision=7)
    assert (told_by(LOCAL).revision, from_tree(to_tree(wanted)).revision) == (0, 7)
    assert to_tree(wanted)["version"] == VERSION
