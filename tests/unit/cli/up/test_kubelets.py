"""Whether hosts run kubelets: what was asked for, what the cluster has, and what stands against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.binaries.product import Release
from protokube.cli.shared.completing import complete_here
from protokube.cli.shared.progress import Progress
from protokube.cli.up.choosing import read_default_spec
from protokube.cli.up.existing import ClusterShape
from protokube.cli.up.kubelets import Kubelets, choose_kubelets, decide, why_not
from protokube.cli.up.kubernetes import Kubernetes
from protokube.config.complete import Config
from protokube.errors import Refused

REASON = "the reason"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))


@pytest.mark.parametrize("kept", [None, True, False])
def test_who_declines_kubelets_gets_none_without_a_reason(kept: bool | None) -> None:
    assert decide(False, kept, REASON) == Kubelets(False)
    assert decide(False, kept, "") == Kubelets(False)


def test_a_new_cluster_has_them_where_they_can_run_and_else_the_reason() -> None:
    assert decide(None, None, "") == Kubelets(True)
    assert decide(None, None, REASON) == Kubelets(False, REASON)


@pytest.mark.parametrize("kept", [True, False])
def test_an_existing_cluster_keeps_what_it_has(kept: bool) -> None:
    assert decide(None, kept, "") == decide(None, kept, REASON) == Kubelets(kept)


@pytest.mark.parametrize("kept", [None, False])
def test_who_asks_for_kubelets_where_none_can_run_is_refused_with_the_reason(kept: bool | None) -> None:
    with pytest.raises(Refused, match="hosts cannot run a kubelet here") as refused:
        decide(True, kept, REASON)
    assert refused.value.saw == REASON
    assert "--no-kubelet" in refused.value.hint
    assert decide(True, kept, "") == Kubelets(True)


def a_config(fields: str = "") -> Config:
    text = "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\n"
    spec, _ = read_default_spec(f"{text}spec: {{cloud: local{fields}}}\n")
    return complete_here(spec, "3.6.8", "1.20.2" if fields else "1.34.1")


def test_programs_of_the_user_without_a_kubelet_are_a_reason(tmp_path: Path) -> None:
    programs = {"kube-apiserver": tmp_path / "kube-apiserver"}
    here = Release(version="1.34.1", folder=tmp_path, programs=programs)
    assert why_not(Kubernetes(version="1.34.1", here=here), a_config()) == f"{tmp_path} has no kubelet"


def test_another_container_runtime_is_a_reason() -> None:
    config = a_config(", kubernetesVersion: 1.20.2, containerRuntime: docker")
    found = why_not(Kubernetes(version="1.20.2"), config)
    assert found == "the spec has another container runtime than containerd"


def test_a_cluster_without_kubernetes_has_none_and_no_line_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = choose_kubelets(None, None, Kubernetes(), a_config(), Path("/nowhere"), Progress(), dry_run=False)
    assert found == Kubelets(False)
    assert capsys.readouterr().err == ""


def test_what_an_existing_cluster_keeps_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    before = ClusterShape.of("1.34.1", False, [("main/a", "master-a")])
    found = choose_kubelets(
        None, before, Kubernetes(version="1.34.1"), a_config(), Path("/nowhere"), Progress(), dry_run=False
    )
    assert found == Kubelets(False)
    assert "no kubelets, so no nodes" in capsys.readouterr().err


def test_a_reason_is_told_in_the_same_line() -> None:
    assert str(Kubelets(False, REASON)) == "no kubelets, so no nodes: the reason"
    assert str(Kubelets(True)) == "kubelets on containerd: hosts are nodes"
