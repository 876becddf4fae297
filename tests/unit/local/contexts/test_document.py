"""A kubeconfig's text: what others wrote keeps its meaning, whatever it is."""

from __future__ import annotations

import json

import pytest
import yaml

from builders.kubeconfigs import CONFIG, a_kubeconfig, a_tree, an_access, entries_of_others
from protokube.errors import Refused
from protokube.local.contexts import document
from protokube.local.contexts.merging import plan_merge
from protokube.local.contexts.removing import plan_removal
from protokube.local.contexts.values import Drop, Owner


def merged(data: bytes | None) -> bytes:
    return document.edited(CONFIG, data, plan_merge([document.read(CONFIG, data)], an_access(), switch=True).edits)


def removed(data: bytes) -> bytes:
    owner = an_access().mark.owner
    return document.edited(CONFIG, data, plan_removal([document.read(CONFIG, data)], owner).edits)


STRANGE = """\
apiVersion: v1
kind: Config
preferences: {colors: on}
x-mine: 2024-01-01
clusters:
- name: yes
  cluster: &shared
    server: "https://prod"
    disable-compression: true
    extensions:
    - extension: {last-update: 2023-11-24, provider: minikube.sigs.k8s.io, version: 1.30}
      name: cluster_info
- cluster: *shared
  name: 0123
users:
- name: 'null'
  user: {exec: {command: aws, args: [eks, --flag=no, "on"], env: null}, client-key-data: !!binary aGVsbG8=}
contexts:
- context: {cluster: 0123, user: 'null', namespace: 1e3}
  name: größe
current-context: größe
"""


def test_scalars_tags_aliases_and_unknown_fields_of_others_stay_as_they_are() -> None:
    after = merged(STRANGE.encode())

    for text in ("colors: on", "x-mine: 2024-01-01", "name: yes", "name: 0123", "namespace: 1e3", "version: 1.30",
                 "name: 'null'", "!!binary", '"on"', "name: größe", "env: null", "--flag=no"):  # fmt: skip
        assert text in after.decode(), text
    assert entries_of_others([after]) == entries_of_others([STRANGE.encode()])
    assert yaml.safe_load(removed(after)) == yaml.safe_load(STRANGE)


def test_after_the_removal_the_meaning_is_what_it_was() -> None:
    before = a_kubeconfig("prod", "staging", current="staging")

    assert yaml.safe_load(removed(merged(before))) == yaml.safe_load(before)


@pytest.mark.parametrize("indent", [None, 2])
def test_json_stays_json(indent: int | None) -> None:
    before = json.dumps(a_tree("prod", current="prod"), indent=indent).encode()
    after = json.loads(merged(before))

    assert [each["name"] for each in after["contexts"]] == ["prod", "protokube-dev"]
    assert json.loads(removed(merged(before))) == json.loads(before)


def test_an_entry_that_shares_its_fields_with_one_of_ours_is_not_changed_with_it() -> None:
    tree = yaml.safe_load(merged(None))
    text = yaml.safe_dump(tree).replace("cluster:\n    certificate", "cluster: &ours\n    certificate")
    text += "x-copy: *ours\n"
    plan = plan_merge([document.read(CONFIG, text.encode())], an_access(port=7443), switch=True)

    after = yaml.safe_load(document.edited(CONFIG, text.encode(), plan.edits))

    assert after["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:7443"
    assert after["x-copy"]["server"] == "https://127.0.0.1:6443"


def test_our_marks_are_text_for_go_too() -> None:
    access = an_access(owner=Owner(machine="12345e678901", state="y"), user="on")
    plan = plan_merge([document.read(CONFIG, None)], access, switch=True)
    after = document.edited(CONFIG, None, plan.edits).decode()

    assert after.count('machine: "12345e678901"') == after.count('state: "y"') == after.count('user: "on"') == 3
    assert plan_merge([document.read(CONFIG, after.encode())], access, switch=True).edits == ()


@pytest.mark.parametrize("text", ["? [a]\n: b\n", "clusters: [{name: a, cluster: {? {x: y} : z}}]\n"])
def test_fields_without_a_name_are_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        merged(text.encode())

    assert refused.value.saw == "a field in it has no name"


def test_a_field_that_only_yaml_knows_stays() -> None:
    assert "<<:" in merged(b"<<: [{a: b}]\n").decode()


def test_text_that_cannot_be_written_again_is_refused_before_anything_is_written() -> None:
    data = b'clusters: [{name: "\\ud800", cluster: {}}]\n'

    with pytest.raises(Refused, match="not a kubeconfig that protokube can change"):
        merged(data)


def test_no_plan_removes_an_entry_without_our_mark() -> None:
    before = a_kubeconfig("prod", current="prod")
    drops = [Drop(path=CONFIG, section=section, name="prod") for section in ("clusters", "contexts")]

    assert entries_of_others([document.edited(CONFIG, before, drops)]) == entries_of_others([before])


@pytest.mark.parametrize(
    "data",
    [
        b"[1", b"- a\n", b"text", b"\xff\xfe\x00", b"kind: Secret\n", b"apiVersion: v2\n", b"clusters: {}\n",
        b"a: \x00", b"contexts: none\n", b"current-context: [a]\n", b"a: 1\n---\nb: 2\n", b"[" * 5000, b"*x",
        b"a: &a [x,x,x,x,x,x,x,x,x]\nclusters: [&b [*c]]\n",
        b"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        b"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nclusters: [*e,*e,*e,*e]\n",
        b"clusters:\n- &a {name: a, cluster: {x: *a}}\n",
    ],
)  # fmt: skip
def test_what_is_no_kubeconfig_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(Refused, match="not a kubeconfig that protokube can change") as refused:
        document.read(CONFIG, data)

    assert CONFIG in refused.value.message
    assert "\n" not in refused.value.saw


@pytest.mark.parametrize(
    "data", [b"clusters: [1, null, {name: [a]}, {name: a}, {name: b, cluster: 7}]\ncontexts: [x]\n"]
)
def test_entries_that_make_no_sense_are_left_alone(data: bytes) -> None:
    assert yaml.safe_load(removed(merged(data)))["clusters"] == yaml.safe_load(data)["clusters"]


@pytest.mark.parametrize("name", ["y", "N", "12e3", "1_0", "0o17", ".5", "on", "null", "a: b", "x #y"])
def test_a_former_context_that_go_would_not_take_for_text_returns_in_quotes(name: str) -> None:
    before = yaml.safe_dump(a_tree("prod"), sort_keys=False) + f"current-context: {json.dumps(name)}\n"
    before = before.replace("- name: prod\n  context", f"- name: {json.dumps(name)}\n  context")

    after = removed(merged(before.encode())).decode()

    assert f"current-context: {json.dumps(name)}" in after.replace("'", '"')


def test_what_is_written_as_kubectl_does_is_the_same_text_after_the_removal() -> None:
    before = a_kubeconfig("prod", "arn:aws:eks:eu-west-1:1:cluster/x", current="arn:aws:eks:eu-west-1:1:cluster/x")

    assert removed(merged(before)) == before
