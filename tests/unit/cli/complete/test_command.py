"""`protokube complete`: the whole configuration, and why each value is what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from builders.command import EXAMPLES, MINIMAL, Call
from builders.spec import a_cluster
from protokube.errors import ExitCode

KOPS = str(EXAMPLES / "kops-private.yaml")


def test_the_result_is_the_cluster_and_its_groups(call: Call) -> None:
    answer = call("complete", MINIMAL)

    documents = list(yaml.safe_load_all(answer.out))
    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert [each["kind"] for each in documents] == ["Cluster", *["InstanceGroup"] * 4]
    assert documents[0]["metadata"]["name"] == "dev.example.com"
    assert documents[0]["rendered"]["kubeAPIServer"]["flags"]["secure-port"] == 443


def test_the_same_spec_gives_the_same_bytes(call: Call) -> None:
    assert call("complete", MINIMAL) == call("complete", MINIMAL)


def test_as_json_it_holds_the_same_documents(call: Call) -> None:
    whole = json.loads(call("complete", MINIMAL, "-o", "json").out)

    assert whole["kind"] == "List"
    assert whole["items"] == list(yaml.safe_load_all(call("complete", MINIMAL).out))


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_completing_a_complete_configuration_changes_nothing(call: Call, here: Path, form: str) -> None:
    once = call("complete", MINIMAL, "-o", form).out
    (here / "whole.yaml").write_text(once)

    assert call("complete", "whole.yaml", "-o", form).out == once


# --- warnings


def test_warnings_go_to_stderr_and_leave_the_result_clean(call: Call) -> None:
    answer = call("complete", KOPS)

    assert answer.code == ExitCode.OK
    assert f"warning: {KOPS}:14 channel: ignored: " in answer.err
    assert "warning" not in answer.out
    assert list(yaml.safe_load_all(answer.out))


def test_a_warning_has_its_hint_below_it(call: Call) -> None:
    lines = call("complete", KOPS).err.splitlines()
    index = next(index for index, line in enumerate(lines) if " docker: is not used" in line)

    assert lines[index + 1].startswith("  hint: remove `docker`")


@pytest.mark.parametrize("quiet", ["-q", "--quiet"])
def test_quiet_means_no_warnings_and_the_same_result(call: Call, quiet: str) -> None:
    loud, hushed = call("complete", KOPS), call("complete", KOPS, quiet)

    assert hushed.err == ""
    assert hushed.out == loud.out


def test_quiet_hides_no_errors(call: Call, here: Path) -> None:
    (here / "spec.yaml").write_text(a_cluster("colour: blue"))

    assert "colour: unknown field" in call("complete", "spec.yaml", "-q").err


# --- why


def test_why_a_default_is_what_it_is_takes_one_sentence(call: Call) -> None:
    answer = call("complete", MINIMAL, "--why", "kubelet.maxPods")

    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert answer.out == "kubelet.maxPods is 110: default, what Kubernetes is tested with.\n"


def test_why_a_flag_is_what_it_is_follows_it_to_where_it_comes_from(call: Call) -> None:
    answer = call("complete", MINIMAL, "--why", "kubeAPIServer.flags.etcd-servers")

    assert answer.out.count("\n") == 1
    assert answer.out.startswith("kubeAPIServer.flags.etcd-servers is https://127.0.0.1:4001: passed as a flag; ")
    assert "derived from kubeAPIServer.etcdServers" in answer.out
    assert "etcdClusters.main.clientPort 4001" in answer.out


def test_why_a_value_of_the_users_is_what_it_is_names_its_place(call: Call, here: Path) -> None:
    (here / "spec.yaml").write_text(a_cluster("kubelet: {maxPods: 0}"))

    answer = call("complete", "spec.yaml", "--why", "kubelet.maxPods")

    assert answer.out == "kubelet.maxPods is 0: you set it at spec.yaml:8.\n"


def test_why_of_a_part_gives_a_sentence_for_each_value_under_it(call: Call) -> None:
    lines = call("complete", MINIMAL, "--why", "kubelet").out.splitlines()

    assert len(lines) > 10
    assert all(line.startswith("kubelet.") and line.endswith(".") for line in lines)
    assert "kubelet.maxPods is 110: default, what Kubernetes is tested with." in lines


def test_why_nobody_sets_a_flag_is_answered_with_the_components_own_default(call: Call) -> None:
    answer = call("complete", MINIMAL, "--why", "kubeAPIServer.flags.livez-grace-period")

    assert "nothing sets it, so the default of kube-apiserver 1.36 applies" in answer.out


@pytest.mark.parametrize("path", ["kubelet.maxPods", "spec.kubelet.maxPods", ".kubelet.maxPods"])
def test_a_path_may_be_written_as_people_write_them(call: Call, path: str) -> None:
    assert call("complete", MINIMAL, "--why", path).out.startswith("kubelet.maxPods is 110")


def test_a_path_that_is_not_there_is_told_with_the_one_probably_meant(call: Call) -> None:
    answer = call("complete", MINIMAL, "--why", "kubelet.maxpod")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert "error: the complete configuration has no value kubelet.maxpod" in answer.err
    assert "did you mean `kubelet.maxPods`?" in answer.err


def test_why_as_data_is_a_list_of_the_sentences(call: Call) -> None:
    one = call("complete", MINIMAL, "--why", "kubelet.maxPods", "-o", "json")
    many = call("complete", MINIMAL, "--why", "kubelet", "-o", "json")

    assert json.loads(one.out) == ["kubelet.maxPods is 110: default, what Kubernetes is tested with."]
    assert json.loads(many.out) == call("complete", MINIMAL, "--why", "kubelet").out.splitlines()
