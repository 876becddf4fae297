"""From files to a spec: kinds, lists, names, labels, and one cluster out of several files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.spec import EXAMPLES, THEIRS, a_cluster, a_document, a_group, a_kops_cluster, one_problem, problems, read
from protokube.errors import InvalidSpec, Where
from protokube.spec.parse import parse
from protokube.spec.parse import read as parse_anyway

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample admin@example.com"


def test_a_cluster_is_what_the_user_said_and_nothing_more() -> None:
    spec = read(a_cluster("masters: 3"))

    assert spec.name == "dev.example.com"
    assert spec.cluster == {"cloud": "aws", "zones": ["us-east-1a", "us-east-1b", "us-east-1c"], "masters": 3}
    assert (spec.groups, spec.warnings, spec.translated, spec.rendered) == ({}, (), False, {})


def test_every_value_has_its_place() -> None:
    spec = read(a_cluster("masters: 3"), a_group("role: Node"))

    assert spec.places["metadata.name"] == Where("spec.yaml", 4)
    assert spec.places["masters"] == Where("spec.yaml", 8)
    assert spec.places["instanceGroups.nodes"] == Where("spec.yaml", 10)
    assert spec.places["instanceGroups.nodes.role"] == Where("spec.yaml", 15)


def test_groups_are_held_by_name() -> None:
    spec = read(a_group("role: Node\nminSize: 2"), a_cluster(), a_group("role: Master", name="masters"))

    assert spec.groups == {"nodes": {"role": "Node", "minSize": 2}, "masters": {"role": "Master"}}


def test_documents_of_several_files_belong_to_one_cluster() -> None:
    spec = parse([("cluster.yaml", a_cluster()), ("nodes.yaml", a_group("role: Node"))])

    assert spec.places["cloud"].file == "cluster.yaml"
    assert spec.places["instanceGroups.nodes.role"] == Where("nodes.yaml", 6)


def test_what_is_wrong_in_several_files_is_told_at_once_in_the_order_of_the_files() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse([("b.yaml", a_cluster("colour: blue")), ("a.yaml", "a: [\n"), ("c.yaml", a_group("rôle: Node"))])

    assert [str(each.where) for each in caught.value.problems] == ["a.yaml:1", "b.yaml:8", "c.yaml:6"]


def test_what_could_be_understood_is_given_beside_the_problems() -> None:
    spec = parse_anyway([("f.yaml", a_cluster("colour: blue\nmasters: many\nnodes: 4"))])

    assert [each.path for each in spec.problems] == ["colour", "masters"]
    assert spec.cluster == {"cloud": "aws", "zones": ["us-east-1a", "us-east-1b", "us-east-1c"], "nodes": 4}


def test_a_value_that_cannot_be_is_told_and_not_taken() -> None:
    spec = parse_anyway(
        [("f.yaml", a_cluster("masters: 99\nupdatePolicy: never\nkubeAPIServer: {requestTimeout: soon}"))]
    )

    assert len(spec.problems) == 3
    assert not {"masters", "updatePolicy"} & set(spec.cluster)
    assert spec.cluster["kubeAPIServer"] == {}


@pytest.mark.parametrize(
    "text", ["a: [", "", "kind: Cluster", a_group("role: Node"), a_cluster() + "---\n" + a_cluster()]
)
def test_where_it_cannot_be_said_which_cluster_is_meant_nothing_is_given(text: str) -> None:
    with pytest.raises(InvalidSpec):
        parse_anyway([("f.yaml", text)])


def test_a_list_is_the_documents_in_it() -> None:
    items = [
        {
            "apiVersion": "protokube.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": "a.b"},
            "spec": {"cloud": "local"},
        },
        {"apiVersion": "protokube.io/v1alpha1", "kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {}},
    ]
    spec = read(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    assert (spec.name, list(spec.groups)) == ("a.b", ["nodes"])


def test_an_empty_list_holds_no_cluster() -> None:
    assert one_problem("kind: List\nitems: []").message == "there is no document of kind Cluster"


def test_something_in_a_list_that_is_no_document_is_a_problem() -> None:
    found = one_problem("kind: List\nitems:\n- nodes\n")

    assert (found.path, str(found.where)) == ("items", "spec.yaml:3")


def test_a_version_has_one_spelling_after_reading() -> None:
    assert read(a_cluster("kubernetesVersion: v1.30.2")).cluster["kubernetesVersion"] == "1.30.2"
    assert read(a_cluster("kubernetesVersion: 1.20")).cluster["kubernetesVersion"].startswith("1.20.")
    assert read(a_cluster("kubernetesVersion: latest")).cluster["kubernetesVersion"] == "latest"


# --- what a document is


@pytest.mark.parametrize(
    ("change", "path", "message", "hint"),
    [
        (("kind: Cluster\n", ""), "kind", "is not given", "kind: Cluster or InstanceGroup"),
        (("kind: Cluster\n", "kind:\n"), "kind", "is not given", "kind: Cluster or InstanceGroup"),
        (("kind: Cluster", "kind: [Cluster]"), "kind", "is not given", "kind: Cluster or InstanceGroup"),
        (("kind: Cluster", "kind: cluster"), "kind", "unknown kind 'cluster'", "did you mean `Cluster`?"),
        (("kind: Cluster", "kind: Pod"), "kind", "unknown kind 'Pod'", "known are Cluster, InstanceGroup"),
        (
            ("kind: Cluster", "kind: SSHCredential"),
            "kind",
            "unknown kind 'SSHCredential'",
            "known are Cluster, InstanceGroup",
        ),
        (
            ("apiVersion: protokube.io/v1alpha1\n", ""),
            "apiVersion",
            "is not given",
            "apiVersion: protokube.io/v1alpha1",
        ),
        (
            ("protokube.io/v1alpha1", "v1"),
            "apiVersion",
            "unknown apiVersion 'v1'",
            "use protokube.io/v1alpha1 or kops.k8s.io/v1alpha2",
        ),
    ],
)
def test_a_document_says_what_it_is(change: tuple[str, str], path: str, message: str, hint: str) -> None:
    found = one_problem(a_cluster().replace(*change))

    assert (found.path, found.message, found.hint) == (path, message, hint)


def test_a_document_that_says_neither_whose_nor_what_it_is_is_told_both() -> None:
    assert [each.path for each in problems("metadata: {name: a}")] == ["apiVersion", "kind"]


@pytest.mark.parametrize("api", ["kops.k8s.io/v1alpha2", "kops/v1alpha2"])
def test_documents_of_the_original_are_known_by_either_of_their_names(api: str) -> None:
    assert read(a_document("cloudProvider: aws", api=api)).translated


def test_a_field_beside_the_spec_that_does_not_belong_there_is_a_problem() -> None:
    found = one_problem(a_cluster() + "spek: {}\n")

    assert (found.path, found.message, found.hint) == ("spek", "unknown field", "did you mean `spec`?")


def test_a_status_is_nobodys_wish_and_is_passed_over() -> None:
    assert read(a_cluster() + "status: {phase: Ready}\n").name == "dev.example.com"


def test_a_cluster_may_say_nothing_yet() -> None:
    assert read("apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: a.b}\n").cluster == {}
    assert read("apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: a.b}\nspec:\n").cluster == {}


def test_a_spec_that_is_one_word_is_told_as_the_spec() -> None:
    found = one_problem("apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: a.b}\nspec: please\n")

    assert (found.path, found.message) == ("spec", "expected fields of Cluster, found 'please'")


# --- clusters and groups


def test_without_a_cluster_there_is_nothing_to_complete() -> None:
    found = one_problem(a_group("role: Node"))

    assert found.message == "there is no document of kind Cluster"
    assert found.where == Where("spec.yaml", 1)
    assert "examples/minimal.yaml" in found.hint


def test_without_a_cluster_in_several_files_no_one_file_is_to_blame() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse([("a.yaml", ""), ("b.yaml", a_group("role: Node"))])

    assert [each.where for each in caught.value.problems] == [None]


def test_where_something_else_is_wrong_a_missing_cluster_is_not_told_on_top() -> None:
    assert [each.path for each in problems(a_cluster().replace("kind: Cluster", "kind: Clutser"))] == ["kind"]


def test_a_second_cluster_is_told_with_the_place_of_the_first() -> None:
    found = one_problem(a_cluster(), a_cluster(name="prod.example.com"))

    assert found.message == "a second Cluster, 'prod.example.com'; the first is 'dev.example.com' at spec.yaml:1"
    assert (found.where, found.hint) == (Where("spec.yaml", 9), "put each cluster in files of its own")


def test_a_name_given_to_two_groups_is_told_with_the_place_of_the_first() -> None:
    found = one_problem(a_cluster(), a_group("role: Node"), a_group("role: Master"))

    assert (found.path, found.message) == ("instanceGroups.nodes", "the name 'nodes' is taken already, by spec.yaml:9")


# --- metadata


@pytest.mark.parametrize(
    "metadata",
    ["metadata: {}", "metadata:", "metadata: dev", "metadata: [a]", "metadata: {name: }", "metadata: {name: [a]}", ""],
)
@pytest.mark.parametrize("kind", ["Cluster", "InstanceGroup"])
def test_a_document_without_a_name_is_a_problem(metadata: str, kind: str) -> None:
    document = f"apiVersion: protokube.io/v1alpha1\nkind: {kind}\n{metadata}\nspec: {{}}\n"
    found = [each for each in problems(document) if each.path == "metadata.name"]

    assert [each.message for each in found] == [f"this {kind} has no name"]
    assert found[0].hint.startswith("metadata: {name: ")


def test_an_unknown_field_in_the_metadata_is_a_problem() -> None:
    found = one_problem(a_cluster().replace("  name: dev", "  lables: {}\n  name: dev"))

    assert (found.path, found.where, found.hint) == (
        "metadata.lables",
        Where("spec.yaml", 4),
        "did you mean `labels`?",
    )


def test_what_kubernetes_itself_puts_into_metadata_is_passed_over() -> None:
    extra = "  creationTimestamp: null\n  generation: 3\n  namespace: x\n  annotations: {a: b}\n  labels:\n  name: dev"

    assert read(a_cluster().replace("  name: dev", extra)).name == "dev.example.com"


def test_labels_must_be_a_mapping() -> None:
    found = one_problem(a_cluster().replace("  name: dev", "  labels: [a]\n  name: dev"))

    assert (found.path, found.message) == ("metadata.labels", "expected a mapping")


def labelled(text: str, label: str, owner: str) -> str:
    return text.replace("metadata:\n", f"metadata:\n  labels: {{{label}: {owner}}}\n")


@pytest.mark.parametrize("label", ["protokube.io/cluster", "kops.k8s.io/cluster"])
def test_a_group_that_says_it_belongs_elsewhere_is_a_problem(label: str) -> None:
    group = a_group("role: Node")

    assert read(a_cluster(), labelled(group, label, "dev.example.com")).groups
    found = one_problem(labelled(group, label, "prod.example.com"), a_cluster())
    assert found.path == "instanceGroups.nodes"
    assert found.message == "its label names the cluster 'prod.example.com', but the cluster is 'dev.example.com'"
    assert found.where == Where("spec.yaml", 4)


def test_a_cluster_that_says_it_is_another_is_a_problem_of_its_label() -> None:
    found = one_problem(labelled(a_cluster(), "protokube.io/cluster", "prod.example.com"))

    assert found.path == "metadata.labels.protokube.io/cluster"


def test_other_labels_are_nobodys_business() -> None:
    assert read(labelled(a_cluster(), "team", "platform")).name == "dev.example.com"


# --- keys of the original


def ssh_credential(body: str, *, name: str = "admin") -> str:
    return a_document(body, kind="SSHCredential", name=name, api=THEIRS)


def test_ssh_credentials_of_the_original_are_keys_of_the_cluster() -> None:
    spec = read(a_kops_cluster(), ssh_credential(f"publicKey: {KEY}"), ssh_credential("publicKey: |\n  ssh-rsa BBBB\n"))

    assert spec.cluster["sshPublicKeys"] == [KEY, "ssh-rsa BBBB"]
    assert spec.places["sshPublicKeys"] == Where("spec.yaml", 9)


def test_keys_of_the_cluster_and_of_credentials_stand_side_by_side() -> None:
    spec = read(a_cluster("sshPublicKeys: [ssh-rsa AAAA]"), ssh_credential(f"publicKey: {KEY}"))

    assert spec.cluster["sshPublicKeys"] == ["ssh-rsa AAAA", KEY]
    assert spec.places["sshPublicKeys"] == Where("spec.yaml", 8)


@pytest.mark.parametrize("body", ["publickey: x", "publicKey:", "publicKey: [a]", "{}"])
def test_a_credential_without_a_key_is_a_problem(body: str) -> None:
    found = one_problem(a_kops_cluster(), ssh_credential(body))

    assert (found.path, found.message) == ("publicKey", "is not given")


def test_a_credential_needs_no_name() -> None:
    text = ssh_credential(f"publicKey: {KEY}").replace("  name: admin\n", "  labels: {}\n")

    assert read(a_kops_cluster(), text).cluster["sshPublicKeys"] == [KEY]


# --- rendered


def test_what_a_complete_configuration_says_of_its_flags_is_kept_apart() -> None:
    rendered = "rendered:\n  kubelet:\n    flags: {v: 2, name: '1.30'}\n"
    spec = read(a_cluster() + rendered.replace("kubelet", "kubeAPIServer"), a_group("role: Node") + rendered)

    assert spec.rendered == {
        "": {"kubeAPIServer": {"flags": {"v": 2, "name": "1.30"}}},
        "nodes": {"kubelet": {"flags": {"v": 2, "name": "1.30"}}},
    }
    assert spec.places["rendered.kubeAPIServer.flags.v"] == Where("spec.yaml", 10)
    assert "instanceGroups.nodes.rendered.kubelet" in spec.places


def test_rendered_without_a_value_is_not_said_and_anything_but_a_mapping_is_a_problem() -> None:
    assert read(a_cluster() + "rendered:\n").rendered == {}
    found = one_problem(a_cluster() + "rendered: please\n")
    assert (found.path, found.message) == ("rendered", "expected a mapping")


# --- examples


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda each: each.stem)
def test_every_example_is_read(example: Path) -> None:
    text = example.read_text()
    spec = parse([("example.yaml", text)])

    assert f"name: {spec.name}" in text
    assert spec.translated == ("kops" in text)
