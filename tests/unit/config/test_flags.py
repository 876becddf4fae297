"""Which flags exist at which version, also at versions whose binaries we never saw."""

from __future__ import annotations

import pytest

from builders.config import table
from protokube.config.flags import ETCD_TABLES, KUBERNETES_TABLES, flag_table
from protokube.spec.version import Version

BINARIES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet")


@pytest.mark.parametrize("binary", BINARIES)
@pytest.mark.parametrize("name", KUBERNETES_TABLES)
def test_a_version_we_have_seen_lists_what_its_own_binary_listed(name: str, binary: str) -> None:
    found = flag_table(binary, Version(1, int(name[2:])))
    listed = table(name)[binary]

    assert found.sure.keys() == listed.keys()
    assert found.perhaps == {}
    assert {flag for flag in listed if found.deprecated(flag)} == {
        flag for flag, entry in listed.items() if entry.get("deprecated")
    }


@pytest.mark.parametrize("binary", BINARIES)
@pytest.mark.parametrize("minor", [21, 24, 27, 29, 31, 33, 35])
def test_between_two_seen_versions_a_flag_is_sure_only_if_both_list_it(minor: int, binary: str) -> None:
    seen = [int(name[2:]) for name in KUBERNETES_TABLES]
    low = table(f"1.{max(each for each in seen if each < minor)}")[binary]
    high = table(f"1.{min(each for each in seen if each > minor)}")[binary]
    found = flag_table(binary, Version(1, minor))

    assert found.sure.keys() == low.keys() & high.keys()
    assert found.perhaps.keys() == low.keys() ^ high.keys()
    assert found.version == f"1.{minor}"


def test_a_flag_only_one_neighbour_lists_is_named_with_that_neighbour() -> None:
    between = flag_table("kubelet", Version(1, 24))

    assert between.perhaps["container-runtime"] == "1.20"
    assert not between.lists("container-runtime")
    assert "seccomp-default" not in table("1.20")["kubelet"]
    assert between.perhaps["seccomp-default"] == "1.28"


def test_between_two_seen_versions_a_flag_is_deprecated_if_either_says_so() -> None:
    assert not table("1.20")["kubelet"]["pod-infra-container-image"].get("deprecated")
    assert table("1.28")["kubelet"]["pod-infra-container-image"]["deprecated"]

    assert flag_table("kubelet", Version(1, 24)).deprecated("pod-infra-container-image")


def test_a_flag_nobody_lists_is_neither_there_nor_deprecated_nor_has_a_default() -> None:
    found = flag_table("kubelet", Version(1, 36))

    assert not found.lists("no-such-flag")
    assert not found.deprecated("no-such-flag")
    assert found.default("no-such-flag") is None


def test_the_default_is_what_the_binary_printed() -> None:
    assert flag_table("kube-apiserver", Version(1, 36)).default("secure-port") == table("1.36")["kube-apiserver"][
        "secure-port"
    ].get("default")


@pytest.mark.parametrize(("version", "stands_in"), [(Version(1, 10), "1.20"), (Version(1, 99), "1.37")])
def test_beyond_the_oldest_and_newest_table_those_stand_in(version: Version, stands_in: str) -> None:
    found = flag_table("kube-apiserver", version)

    assert found.sure.keys() == table(stands_in)["kube-apiserver"].keys()
    assert found.perhaps == {}


@pytest.mark.parametrize(
    ("version", "name"), [((3, 3), "3.4"), ((3, 4), "3.4"), ((3, 5), "3.5"), ((3, 6), "3.6"), ((3, 7), "3.6")]
)
def test_etcd_has_tables_of_its_own(version: tuple[int, int], name: str) -> None:
    assert name in ETCD_TABLES
    assert flag_table("etcd", Version(*version)).sure.keys() == table(f"etcd-{name}")["etcd"].keys()
