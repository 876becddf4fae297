"""Copies of our manifests must not run; whatever else lies there is its owner's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.agent.controlplane.manifestguard import Entry, copy_of, guard

OURS = {
    "kube-apiserver.manifest": "kube-system/kube-apiserver",
    "etcd.manifest": "kube-system/etcd-server",
    "etcd-events.manifest": "kube-system/etcd-server-events",
}
ENDINGS = [
    "~", ".~1~", ".bak", ".BAK", ".bak2", ".backup", ".orig", ".old", ".save", ".rpmsave", ".rpmnew", ".rpmorig",
    ".dpkg-old", ".dpkg-dist", ".dpkg-new", ".ucf-old", ".swp", ".swo", ".tmp", ".new", ".copy", "-copy", "_old", ".1",
    ".20240131", "-2024-01-31T10:00:00Z", ".bak~", ".old.1", ".disabled", ".rej",
]  # fmt: skip


@pytest.mark.parametrize("ending", [*ENDINGS, " (copy)", " (1)", "(2)", " copy", ".bak (copy)"])
def test_a_name_that_editors_people_or_package_managers_give_to_a_copy_is_known(ending: str) -> None:
    for each in OURS:
        assert copy_of(each + ending, OURS) == each


def test_the_file_that_emacs_saves_by_itself_is_known() -> None:
    assert copy_of("#etcd.manifest#", OURS) == "etcd.manifest"


@pytest.mark.parametrize(
    "name",
    [
        "kube-apiserver-proxy.manifest",
        "backup-etcd.manifest",
        "old-etcd.manifest",
        "etcd.manifests",
        "etcd.manifest.yaml",
        "etcd.manifester",
        "my-etcd.manifest.d",
        "kube-apiserver",
        "etcd",
        "#etcd.manifest",
        "oldies.manifest",
    ],
)
def test_a_name_that_only_looks_similar_is_not_a_copy(name: str) -> None:
    assert copy_of(name, OURS) is None


def test_a_long_name_of_numbers_is_judged_at_once() -> None:
    assert copy_of("etcd.manifest" + "-1" * 120 + "x", OURS) is None


def test_a_file_of_any_name_that_names_a_pod_of_ours_is_set_aside() -> None:
    (aside,) = guard([Entry(name="api.yaml", kind="file", pod="kube-system/kube-apiserver")], OURS)
    assert aside.name == "api.yaml"
    assert aside.why == "it names kube-system/kube-apiserver, as kube-apiserver.manifest does"


def test_a_second_link_to_a_pod_of_ours_is_set_aside_and_one_that_dangles_is_not() -> None:
    entries = [
        Entry(name="etcd-again.manifest", kind="link", pod="kube-system/etcd-server"),
        Entry(name="etcd.manifest~", kind="link"),
    ]
    assert [each.name for each in guard(entries, OURS)] == ["etcd-again.manifest"]


def test_the_same_name_in_another_namespace_is_another_pod() -> None:
    assert guard([Entry(name="mine.yaml", kind="file", pod="default/kube-apiserver")], OURS) == []


KINDS = st.sampled_from(["file", "link", "dir", "other"])
PODS = st.sampled_from(["", "default/web", "kube-system/kube-proxy", *OURS.values()])
NAMES = st.one_of(
    st.sampled_from(sorted(OURS)),
    st.builds(lambda name, ending: name + ending, st.sampled_from(sorted(OURS)), st.sampled_from(ENDINGS)),
    st.text("abcde.-~#(1 ", min_size=1, max_size=20),
)
ENTRIES = st.lists(st.builds(Entry, name=NAMES, kind=KINDS, pod=PODS), max_size=12, unique_by=lambda each: each.name)


@given(entries=ENTRIES)
def test_nothing_of_ours_runs_twice_and_nothing_of_others_is_touched(entries: list[Entry]) -> None:
    asides = [each.name for each in guard(entries, OURS)]
    by_name = {each.name: each for each in entries}

    assert asides == sorted(set(asides))
    assert not any(name in OURS or name.startswith(".") for name in asides)
    assert all(by_name[name].kind in ("file", "link") for name in asides)
    for name in asides:
        assert by_name[name].pod in OURS.values() or copy_of(name, OURS)
    for entry in entries:
        if entry.name not in OURS and not entry.name.startswith(".") and entry.kind in ("file", "link"):
            assert entry.pod not in OURS.values() or entry.name in asides


@given(entries=ENTRIES)
def test_what_was_set_aside_leaves_nothing_more_to_do(entries: list[Entry]) -> None:
    gone = {each.name for each in guard(entries, OURS)}
    assert guard([each for each in entries if each.name not in gone], OURS) == []
