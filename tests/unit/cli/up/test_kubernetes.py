"""Which version of Kubernetes `up` takes, and from where, before anything is asked or written."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from protokube.binaries.product import Release
from protokube.binaries.progress import Silent
from protokube.cli.up.choosing import default_spec, read_default_spec, read_spec
from protokube.cli.up.existing import ClusterShape
from protokube.cli.up.kubernetes import Kubernetes, bring, choose_kubernetes, minutes_to_build, named_version
from protokube.errors import InvalidRequest, InvalidSpec, Refused
from protokube.spec.parse import Spec
from protokube.spec.version import DEFAULT, NEWEST_PATCH


class Choose(Protocol):
    def __call__(
        self, spec: Spec | None = None, option: str = "", *, needed: bool = False, dry_run: bool = False
    ) -> Kubernetes: ...


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Choose:
    """With a cache that is empty unless the test fills it."""
    monkeypatch.delenv("PROTOKUBE_KUBERNETES_BIN", raising=False)

    def call(spec: Spec | None = None, option: str = "", *, needed: bool = False, dry_run: bool = False) -> Kubernetes:
        spec = spec or read_default_spec(default_spec("laptop", 3, events=False))[0]
        return choose_kubernetes(spec, None, option, tmp_path / "cache", Silent(), needed=needed, dry_run=dry_run)

    return call


def a_spec(folder: Path, fields: str = "") -> Spec:
    file = folder / "spec.yaml"
    head = "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\n"
    file.write_text(f"{head}spec: {{cloud: local{fields}}}\n")
    return read_spec(file)[0]


def in_cache(cache: Path, version: str, *names: str) -> None:
    from protokube.binaries.kubernetes import PROGRAMS
    from protokube.binaries.product import COMPLETE

    folder = cache / "kubernetes" / version
    folder.mkdir(parents=True)
    for name in names or PROGRAMS:
        (folder / name).touch(mode=0o755)
    (folder / COMPLETE).touch()


def existing(version: str) -> ClusterShape:
    return ClusterShape.of(version, False, [("main/a", "master-a")])


def test_what_is_on_this_machine_is_taken_and_the_newest_of_it(choose: Choose, tmp_path: Path) -> None:
    in_cache(tmp_path / "cache", "1.34.1")
    in_cache(tmp_path / "cache", "1.36.2")

    found = choose()

    assert (found.version, found.here is not None, found.missing) == ("1.36.2", True, "")
    assert str(found) == "Kubernetes 1.36.2"
    assert choose(option="v1.34.1").version == "1.34.1"
    assert choose(a_spec(tmp_path, ", kubernetesVersion: 1.34.1")).version == "1.34.1"


def test_none_is_none_whatever_is_here(choose: Choose, tmp_path: Path) -> None:
    in_cache(tmp_path / "cache", "1.36.2")
    assert choose(option="none") == Kubernetes()
    assert str(Kubernetes()) == "no Kubernetes: etcd and names alone"


def test_a_kubelet_without_kubernetes_is_refused(choose: Choose) -> None:
    with pytest.raises(Refused, match="no kubelet in a cluster without Kubernetes") as refused:
        choose(option="none", needed=True)
    assert refused.value.code == "needs-kubernetes"


def test_a_spec_for_one_version_and_an_option_for_another_are_refused(choose: Choose, tmp_path: Path) -> None:
    spec = a_spec(tmp_path, ", kubernetesVersion: 1.28.1")
    with pytest.raises(Refused, match=r"is for Kubernetes 1\.28\.1"):
        choose(spec, "1.20.2")
    assert choose(spec, "none") == Kubernetes()
    assert named_version(spec, None, "v1.28.1") == "1.28.1"


@pytest.mark.parametrize("option", ["biuld", "Build", "nnone", "latest", "1", "1.36.4.1", "1.36.x", "../1.36.4", " "])
def test_what_is_no_version_is_refused_with_what_may_be_said(choose: Choose, option: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a version of Kubernetes") as refused:
        choose(option=option)
    assert refused.value.want == f"a version such as {DEFAULT}, `build` or `none`"


def test_a_mistyped_word_is_told_with_the_one_that_was_meant(choose: Choose) -> None:
    with pytest.raises(InvalidRequest) as refused:
        choose(option="biuld")
    assert refused.value.hint == "did you mean `build`?"


def test_a_minor_version_is_its_newest_patch_release(tmp_path: Path) -> None:
    newest = f"1.34.{NEWEST_PATCH['1.34']}"
    assert named_version(a_spec(tmp_path), None, "1.34") == newest
    assert named_version(a_spec(tmp_path, ', kubernetesVersion: "1.34"'), None, "") == newest


@pytest.mark.parametrize("option", ["1.19.3", "build"])
def test_what_is_wrong_with_the_spec_for_this_version_is_told_before_anything_is_fetched(
    choose: Choose, option: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSpec):
        choose(a_spec(tmp_path, ", mastres: 3" if option == "build" else ""), option)


def test_a_build_is_of_the_version_that_the_spec_or_the_cluster_has_else_of_the_tested_one(
    choose: Choose, tmp_path: Path
) -> None:
    assert choose(option="build") == Kubernetes(version=str(DEFAULT), build=True)
    assert (
        str(choose(option="build"))
        == f"Kubernetes {DEFAULT}, to be built with Go in about {minutes_to_build()} minutes"
    )
    spec = a_spec(tmp_path, ", kubernetesVersion: 1.34.1")
    assert choose(spec, "build") == Kubernetes(version="1.34.1", build=True)
    assert named_version(a_spec(tmp_path), existing("1.35.2"), "build") == "1.35.2"
    assert named_version(a_spec(tmp_path), existing("none"), "build") == str(DEFAULT)
    assert named_version(spec, existing("1.33.0"), "build") == "1.34.1"


def test_a_build_that_is_in_the_cache_is_not_done_again(choose: Choose, tmp_path: Path) -> None:
    in_cache(tmp_path / "cache", str(DEFAULT))
    found = choose(option="build")
    assert (found.version, found.build, found.here is not None) == (str(DEFAULT), False, True)


def test_a_dry_run_does_not_look_for_what_is_named(choose: Choose, tmp_path: Path) -> None:
    """Sockets are refused in this tier: a look at the network would fail."""
    named = choose(a_spec(tmp_path, ", kubernetesVersion: 1.28.1"), dry_run=True)
    assert named == Kubernetes(version="1.28.1")
    assert str(named) == "Kubernetes 1.28.1, to be downloaded"
    assert "to be built with Go" in str(choose(option="build", dry_run=True))


def test_the_minutes_of_a_build_go_by_the_processors_that_we_may_use() -> None:
    assert [minutes_to_build(processors) for processors in (1, 2, 4, 64)] == [20, 10, 5, 3]
    assert 3 <= minutes_to_build() <= 20


def test_a_kubernetes_without_a_kubelet_is_one_all_the_same(tmp_path: Path) -> None:
    programs = {"kube-apiserver": tmp_path / "kube-apiserver"}
    chosen = Kubernetes(version="1.34.1", here=Release(version="1.34.1", folder=tmp_path, programs=programs))
    assert bring(chosen, tmp_path, Silent()) is chosen.here
