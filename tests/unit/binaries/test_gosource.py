"""What a build from Go modules is told: the wrapper, the stamps, and which sums count."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.binaries.gosource import (
    GoMod,
    go_version,
    imports,
    read_go_mod,
    unknown_sums,
    wrapper,
)
from protokube.binaries.sources import ETCD_SOURCE, KUBERNETES_SOURCE, SOURCES, kubernetes_staging

RELEASE = {
    "Module": {"Path": "k8s.io/kubernetes"},
    "Go": "1.26.0",
    "GoDebug": [{"Key": "default", "Value": "go1.26"}],
    "Require": [
        {"Path": "github.com/google/uuid", "Version": "v1.6.0"},
        {"Path": "k8s.io/api", "Version": "v0.0.0"},
        {"Path": "k8s.io/kubelet", "Version": "v0.0.0"},
        {"Path": "k8s.io/utils", "Version": "v0.0.0-20260210185600-b8788abfbbc2"},
    ],
    "Replace": [
        {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
        {"Old": {"Path": "example.com/old"}, "New": {"Path": "example.com/fork", "Version": "v1.2.3"}},
    ],
}


def test_the_wrapper_takes_staging_modules_as_they_were_published_with_the_release() -> None:
    text = wrapper(KUBERNETES_SOURCE.modules, "1.36.4", read_go_mod(RELEASE), "v0.36.4")

    assert text.splitlines() == [
        "module protokube.invalid/build",
        "go 1.26.0",
        "godebug default=go1.26",
        "require k8s.io/kubernetes v1.36.4",
        "replace example.com/old => example.com/fork v1.2.3",
        "replace k8s.io/api => k8s.io/api v0.36.4",
        "replace k8s.io/kubelet => k8s.io/kubelet v0.36.4",
    ]


def test_a_module_of_its_own_release_history_is_no_staging_module() -> None:
    assert read_go_mod(RELEASE).staged == ["k8s.io/api", "k8s.io/kubelet"]


def test_a_release_that_says_nothing_of_all_this_is_required_as_it_is() -> None:
    assert read_go_mod({"Module": {"Path": "x"}}) == GoMod(go="1.16", debug={}, replaced={}, staged=[])


@pytest.mark.parametrize(
    ("version", "published"), [("1.36.4", "v0.36.4"), ("1.37.0-rc.1", "v0.37.0-rc.1"), ("1.28.15", "v0.28.15")]
)
def test_staging_modules_carry_the_minor_and_patch_of_their_release(version: str, published: str) -> None:
    assert kubernetes_staging(version) == published


def test_programs_say_which_version_they_are() -> None:
    flags = KUBERNETES_SOURCE.linker_flags("1.36.4", "abc123").split(" ")

    assert flags[:2] == ["-s", "-w"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"-X={package}.gitVersion=v1.36.4" in flags
        assert f"-X={package}.gitMinor=36" in flags
        assert f"-X={package}.gitCommit=abc123" in flags
    assert "-X=k8s.io/component-base/version.gitCommit=" in KUBERNETES_SOURCE.linker_flags("1.36.4", "").split(" "), (
        "no commit is made up"
    )


def test_the_file_of_imports_is_compiled_by_nobody_and_names_each_package_once() -> None:
    text = imports(["k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kubectl"])

    assert text.startswith("//go:build never\n\npackage build\n")
    assert re.findall(r'_ "(.*)"', text) == ["k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kubectl"]


SUMS = "a.example v1.0.0 h1:one=\na.example v1.0.0/go.mod h1:two=\n"


def test_sums_that_we_know_are_enough_and_each_other_one_is_named() -> None:
    assert unknown_sums(SUMS, "a.example v1.0.0/go.mod h1:two=\n\n") == []
    assert unknown_sums(SUMS, SUMS + "b.example v2.0.0 h1:x=\nb.example v2.0.0/go.mod h1:y=\n") == [
        "b.example v2.0.0",
        "b.example v2.0.0/go.mod",
    ]
    assert unknown_sums(SUMS, "a.example v1.0.0 h1:other=\n") == ["a.example v1.0.0"]


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Z"]), min_size=1)))
def test_nothing_that_was_not_pinned_is_ever_overlooked(lines: list[str]) -> None:
    used = "".join(f"{line} v1 h1:{line}=\n" for line in lines)

    assert unknown_sums(used, used) == []
    assert set(unknown_sums("", used)) == {f"{line} v1" for line in lines}


@pytest.mark.parametrize(
    ("older", "newer"), [("1.21", "go1.21.1"), ("go1.9.7", "1.21"), ("1.26.0", "go1.26.8"), ("nonsense", "1.0")]
)
def test_versions_of_go_compare_by_their_numbers(older: str, newer: str) -> None:
    assert go_version(older) < go_version(newer)


def test_a_preview_of_go_counts_as_its_release() -> None:
    assert go_version("go1.27rc1") == go_version("1.27") == go_version("1.27.0")


ETCD_RELEASE = {
    "Module": {"Path": "go.etcd.io/etcd/server/v3"},
    "Go": "1.25.7",
    "Require": [{"Path": "go.etcd.io/etcd/api/v3", "Version": "v3.6.8"}],
    "Replace": [{"Old": {"Path": "go.etcd.io/etcd/api/v3"}, "New": {"Path": "../api"}}],
}


def test_etcds_own_folders_are_published_under_its_version_and_nothing_is_replaced() -> None:
    text = wrapper(ETCD_SOURCE.modules, "3.6.8", read_go_mod(ETCD_RELEASE), ETCD_SOURCE.staging("3.6.8"))

    assert text.splitlines() == [
        "module protokube.invalid/build",
        "go 1.25.7",
        "require go.etcd.io/etcd/server/v3 v3.6.8",
        "require go.etcd.io/etcd/etcdctl/v3 v3.6.8",
        "require go.etcd.io/etcd/etcdutl/v3 v3.6.8",
    ]


def test_etcd_says_its_commit_where_the_proxy_tells_it() -> None:
    assert ETCD_SOURCE.linker_flags("3.6.8", "abc123def").split() == [
        "-s",
        "-w",
        "-X=go.etcd.io/etcd/api/v3/version.GitSHA=abc123d",
    ]
    assert ETCD_SOURCE.linker_flags("3.6.8", "") == "-s -w"


@pytest.mark.parametrize("key", SOURCES)
def test_every_program_of_a_product_has_a_package_in_a_module_that_is_required(key: str) -> None:
    source = SOURCES[key]
    assert tuple(source.packages) == source.product.programs
    assert all(package.startswith(source.modules) for package in source.packages.values())
