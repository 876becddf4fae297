"""What `up` decides before it touches the machine, and what it says at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.binaries.progress import Silent
from protokube.cli.shared.cluster_view import waits
from protokube.cli.shared.completing import complete_here
from protokube.cli.up.choosing import (
    default_spec,
    find_etcd,
    read_default_spec,
    read_spec,
)
from protokube.cli.up.command import need_tools
from protokube.cli.up.waiting import is_ready
from protokube.config.complete import Config
from protokube.errors import InvalidSpec, Refused
from protokube.local.base.paths import Paths


def the_few_lines(name: str = "laptop", masters: int = 3, *, events: bool = False) -> Config:
    spec, _ = read_default_spec(default_spec(name, masters, events))
    return complete_here(spec, "3.4.23", "")


def a_spec(folder: Path, fields: str) -> Path:
    file = folder / "spec.yaml"
    head = "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev.example.com}\n"
    file.write_text(f"{head}spec: {{{fields}}}\n")
    return file


def test_a_few_lines_become_three_masters_with_the_etcd_that_is_here() -> None:
    config = the_few_lines()

    assert config.name == "laptop"
    assert list(config.cluster["etcdClusters"]) == ["main"]
    assert config.cluster["etcdClusters"]["main"]["version"] == "3.4.23"
    assert list(config.cluster["etcdClusters"]["main"]["members"]) == ["a", "b", "c"]


def test_events_get_an_etcd_of_their_own_when_asked_for() -> None:
    assert list(the_few_lines(events=True).cluster["etcdClusters"]) == ["main", "events"]


@pytest.mark.parametrize("masters", [1, 3, 5])
def test_there_are_as_many_members_as_masters(masters: int) -> None:
    assert len(the_few_lines(masters=masters).cluster["etcdClusters"]["main"]["members"]) == masters


def test_a_name_that_cannot_be_one_is_a_problem_and_not_a_surprise() -> None:
    with pytest.raises(InvalidSpec):
        the_few_lines("Not A Name")


def test_a_spec_for_another_cloud_is_refused(tmp_path: Path) -> None:
    spec, _ = read_spec(a_spec(tmp_path, "cloud: aws, zones: [us-east-1a]"))
    with pytest.raises(Refused, match="is for aws"):
        complete_here(spec, "3.4.23", "")


def test_a_spec_that_names_no_versions_is_for_the_programs_that_are_here(tmp_path: Path) -> None:
    spec, texts = read_spec(a_spec(tmp_path, "cloud: local"))
    tree = complete_here(spec, "3.4.23", "1.20.2").cluster

    assert tree["kubernetesVersion"] == "1.20.2"
    assert tree["kubeAPIServer"]["image"].endswith(":v1.20.2")
    assert tree["etcdClusters"]["main"]["version"] == "3.4.23"
    assert "1.20.2" not in texts[0][1]


def test_versions_that_a_spec_names_are_kept(tmp_path: Path) -> None:
    fields = "cloud: local, kubernetesVersion: 1.28.1, etcdClusters: [{name: main, version: 3.5.9}, {name: events}]"
    spec, _ = read_spec(a_spec(tmp_path, fields))
    tree = complete_here(spec, "3.5.9", "1.28.1").cluster

    assert tree["kubernetesVersion"] == "1.28.1"
    assert {name: etcd["version"] for name, etcd in tree["etcdClusters"].items()} == {
        "main": "3.5.9",
        "events": "3.5.9",
    }


def test_etcd_clusters_of_two_versions_are_refused_because_a_host_has_one_program(tmp_path: Path) -> None:
    fields = "cloud: local, etcdClusters: [{name: main, version: 3.5.9}, {name: events, version: 3.6.8}]"
    spec, _ = read_spec(a_spec(tmp_path, fields))
    with pytest.raises(Refused, match="run one version") as refused:
        find_etcd(spec, None, "", Silent())
    assert refused.value.saw == "3.5.9 and 3.6.8 in the spec"


@pytest.mark.parametrize("version", ["latest", "3.3.10", "3.5.1"])
def test_a_wrong_version_in_a_spec_is_told_with_its_place_before_anything_is_fetched(
    version: str, tmp_path: Path
) -> None:
    spec, _ = read_spec(a_spec(tmp_path, f"cloud: local, etcdClusters: [{{name: main, version: {version}}}]"))
    with pytest.raises(InvalidSpec) as raised:
        find_etcd(spec, None, "", Silent())
    assert [each.path for each in raised.value.problems] == ["etcdClusters.main.version"]


def test_a_bad_spec_is_told_with_all_that_is_wrong_as_if_nothing_were_filled_in(tmp_path: Path) -> None:
    spec, _ = read_spec(a_spec(tmp_path, "cloud: local, mastres: 3, etcdClusters: 7"))
    with pytest.raises(InvalidSpec) as raised:
        complete_here(spec, "3.4.23", "1.20.2")
    assert [each.path for each in raised.value.problems] == ["etcdClusters", "mastres"]


def test_the_few_lines_are_a_spec_a_person_could_have_written() -> None:
    assert default_spec("dev", 1, events=False).splitlines()[0] == "apiVersion: protokube.io/v1alpha1"


def test_every_missing_program_is_named_at_once_with_its_package() -> None:
    with pytest.raises(Refused) as refused:
        need_tools([("ip", "iproute2"), ("mkfs.ext4", "e2fsprogs"), ("e2fsck", "e2fsprogs")])

    assert refused.value.message == "this machine lacks ip, mkfs.ext4, e2fsck"
    assert refused.value.hint == "apt-get install e2fsprogs iproute2"
    need_tools([])


def test_what_agents_wait_for_is_read_from_their_status_and_half_a_file_is_no_harm(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "laptop")
    for name, text in {
        "master-a-1": '{"machine": {"name": "master-a-1"}, "report": {"needsAPerson": [], "waiting": '
        '[{"step": "volumes", "about": "main/a", "text": "is being read"}]}}',
        "master-b-1": '{"machine": {"na',
    }.items():
        folder = paths.hosts / name / "run" / "protokube"
        folder.mkdir(parents=True)
        (folder / "status.json").write_text(text)

    assert waits(paths) == ["master-a-1: main/a: is being read"]


def test_a_node_is_ready_if_it_says_so_and_nothing_else_will_do() -> None:
    assert is_ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert not is_ready({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    assert not is_ready({"status": {"conditions": [{"type": "DiskPressure", "status": "True"}]}})
    assert not is_ready({"status": {}})
