"""`complete --store` and `get`: what goes into a state store comes out the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from builders.command import EXAMPLES, MINIMAL, Answer, Call
from builders.spec import a_cluster, a_group
from protokube.errors import ExitCode

GROUPS = str(EXAMPLES / "instance-groups.yaml")
NAME = "groups.example.com"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file://{tmp_path}/store"


def kept(call: Call, store: str, *specs: str) -> Answer:
    """Complete specs into the store."""
    answer = call("complete", *specs, "--store", store)
    assert (answer.code, answer.err) == (ExitCode.OK, "")
    return answer


def test_every_path_that_is_written_is_named_in_the_order_it_is_written(call: Call, store: str) -> None:
    lines = kept(call, store, GROUPS).out.splitlines()

    assert [line.split() for line in lines] == [
        ["written", f"{NAME}/instancegroup/builds"],
        ["written", f"{NAME}/instancegroup/general"],
        *(["written", f"{NAME}/instancegroup/master-us-east-1{zone}"] for zone in "abc"),
        ["written", f"{NAME}/cluster.spec"],
        ["written", f"{NAME}/config"],
    ]


def test_writing_the_same_again_says_unchanged(call: Call, store: str) -> None:
    first = kept(call, store, GROUPS)

    assert kept(call, store, GROUPS).out == first.out.replace("written  ", "unchanged")


def test_only_what_changed_is_written(call: Call, store: str, here: Path) -> None:
    (here / "spec.yaml").write_text(a_cluster() + "---\n" + a_group("role: Node\nminSize: 2"))
    kept(call, store, "spec.yaml")
    (here / "spec.yaml").write_text(a_cluster() + "---\n" + a_group("role: Node\nminSize: 3"))

    states = {path: what for what, path in map(str.split, kept(call, store, "spec.yaml").out.splitlines())}

    assert states["dev.example.com/instancegroup/nodes"] == "written"
    assert states["dev.example.com/instancegroup/master-us-east-1a"] == "unchanged"


def test_as_data_the_paths_and_the_store_are_told(call: Call, store: str) -> None:
    answer = call("complete", MINIMAL, "--store", store, "-o", "json")

    result = json.loads(answer.out)
    assert result["store"] == store
    assert result["paths"]["dev.example.com/cluster.spec"] == "written"
    assert set(result["paths"].values()) == {"written"}


def test_what_was_kept_is_the_cluster_complete_with_its_groups(call: Call, store: str) -> None:
    kept(call, store, GROUPS)

    documents = list(yaml.safe_load_all(call("get", NAME, "--store", store).out))

    assert [(each["kind"], each["metadata"]["name"]) for each in documents] == [
        ("Cluster", NAME),
        ("InstanceGroup", "builds"),
        ("InstanceGroup", "general"),
        *(("InstanceGroup", f"master-us-east-1{zone}") for zone in "abc"),
    ]
    assert documents[0]["spec"]["configBase"] == f"{store}/{NAME}"


def test_what_comes_out_completes_to_itself_and_goes_in_unchanged(call: Call, store: str, here: Path) -> None:
    kept(call, store, GROUPS)
    (here / "back.yaml").write_text(call("get", NAME, "--store", store).out)

    assert call("complete", "back.yaml").out == (here / "back.yaml").read_text()
    lines = kept(call, store, "back.yaml").out.splitlines()
    assert [line.split()[0] for line in lines] == [*["unchanged"] * 6, "written"]


def test_as_data_the_same_documents_come_out(call: Call, store: str) -> None:
    kept(call, store, GROUPS)
    whole = json.loads(call("get", NAME, "--store", store, "-o", "json").out)

    assert whole["kind"] == "List"
    assert whole["items"] == list(yaml.safe_load_all(call("get", NAME, "--store", store).out))


def test_the_users_own_text_comes_out_as_it_was_written_with_its_comments(call: Call, store: str) -> None:
    kept(call, store, GROUPS)

    assert call("get", NAME, "--store", store, "--as-written").out == Path(GROUPS).read_text()


def test_several_files_come_out_as_one_text_that_says_the_same(call: Call, store: str, here: Path) -> None:
    (here / "cluster.yaml").write_text(a_cluster().rstrip("\n"))
    (here / "nodes.yaml").write_text(a_group("role: Node"))
    kept(call, store, "cluster.yaml", "nodes.yaml")

    written = call("get", "dev.example.com", "--store", store, "--as-written").out

    assert written == f"{a_cluster()}---\n{a_group('role: Node')}"


def test_the_users_own_text_as_data(call: Call, store: str) -> None:
    kept(call, store, MINIMAL)
    result = json.loads(call("get", "dev.example.com", "--store", store, "--as-written", "-o", "json").out)

    assert result["items"] == [yaml.safe_load(Path(MINIMAL).read_text())]


def test_a_group_that_left_the_spec_does_not_come_out(call: Call, store: str, here: Path) -> None:
    (here / "spec.yaml").write_text(a_cluster() + "---\n" + a_group("role: Node", name="old"))
    kept(call, store, "spec.yaml")
    (here / "spec.yaml").write_text(a_cluster() + "---\n" + a_group("role: Node", name="new"))
    kept(call, store, "spec.yaml")

    found = call("get", "dev.example.com", "--store", store).out

    assert "name: new\n" in found
    assert "name: old\n" not in found


def test_the_store_may_be_named_by_the_environment(call: Call, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOKUBE_STORE", store)

    assert call("complete", MINIMAL).out.startswith("written ")
    assert call("get").out == "dev.example.com\n"
    assert call("get", "dev.example.com", "--as-written").out == Path(MINIMAL).read_text()


def test_why_writes_nothing_even_where_a_store_is_named(call: Call, store: str) -> None:
    answer = call("complete", MINIMAL, "--store", store, "--why", "configBase")

    assert answer.out.startswith(f"configBase is {store}/dev.example.com: the store it is written to")
    assert call("get", "--store", store, "-o", "json").out == "[]\n"


def test_an_invalid_spec_writes_nothing(call: Call, store: str, here: Path) -> None:
    (here / "spec.yaml").write_text(a_cluster("colour: blue"))

    assert call("complete", "spec.yaml", "--store", store).code == ExitCode.INVALID
    assert call("get", "--store", store, "-o", "json").out == "[]\n"


# --- what is in a store


def test_without_a_name_the_clusters_are_listed(call: Call, store: str) -> None:
    kept(call, store, GROUPS)
    kept(call, store, MINIMAL)

    assert call("get", "--store", store).out == "dev.example.com\ngroups.example.com\n"
    assert json.loads(call("get", "--store", store, "-o", "json").out) == ["dev.example.com", "groups.example.com"]


def test_an_empty_store_says_so(call: Call, store: str) -> None:
    answer = call("get", "--store", store)

    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert answer.out == f"no cluster in {store}\n"


@pytest.mark.parametrize("option", [[], ["--as-written"]], ids=["complete", "as-written"])
def test_a_cluster_that_is_not_there_is_told_with_the_path_that_was_looked_for(
    call: Call, store: str, option: list[str]
) -> None:
    kept(call, store, MINIMAL)
    answer = call("get", "prod.example.com", "--store", store, *option)

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    path = "config" if option else "cluster.spec"
    assert answer.err.splitlines()[0] == f"error: prod.example.com/{path} is not in {store}"
    assert "hint: check the name of the cluster" in answer.err


@pytest.mark.parametrize("name", ["../other", "a/b", "..", ""])
def test_a_name_that_would_lead_elsewhere_is_refused(call: Call, store: str, name: str) -> None:
    kept(call, store, MINIMAL)
    answer = call("get", name, "--store", store)

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")


def test_a_store_of_a_kind_we_do_not_have_is_refused_with_the_one_probably_meant(call: Call) -> None:
    answer = call("get", "--store", "s4://bucket/clusters")

    assert answer.code == ExitCode.REFUSED
    assert answer.err.splitlines()[0].endswith('there is no store of the kind "s4"')
    assert "did you mean s3://?" in answer.err


def test_a_cluster_that_the_original_kept_comes_out_with_all_groups_beside_it(call: Call, tmp_path: Path) -> None:
    cluster = tmp_path / "web.example.com"
    (cluster / "instancegroup").mkdir(parents=True)
    (cluster / "config").write_text("kind: Cluster\n")
    (cluster / "cluster.spec").write_text("kind: Cluster\nmetadata:\n  name: web.example.com\n")
    (cluster / "instancegroup" / "nodes").write_text("kind: InstanceGroup\n")

    answer = call("get", "web.example.com", "--store", str(tmp_path))

    assert [each["kind"] for each in yaml.safe_load_all(answer.out)] == ["Cluster", "InstanceGroup"]


@pytest.mark.parametrize(("data", "message"), [(b"\xff\xfe", "not UTF-8 text"), (b"a: [", "not valid YAML")])
def test_a_store_that_was_damaged_is_told_with_the_path(call: Call, tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "dev.example.com").mkdir()
    (tmp_path / "dev.example.com" / "cluster.spec").write_bytes(data)

    answer = call("get", "dev.example.com", "--store", str(tmp_path))

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert f"  dev.example.com/cluster.spec:1: {message}" in answer.err
