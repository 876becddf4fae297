"""The guard of the kubelet's folder, on a real one."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import a_round
from protokube.agent.controlplane.manifestguard import ASIDE, sync
from protokube.agent.controlplane.podidentity import NoPod, identity
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.launch.machine import FileText

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: kube-system}\nspec: {}\n"


@pytest.fixture
def round_(tmp_path: Path) -> Round:
    (tmp_path / "etc/kubernetes/manifests").mkdir(parents=True)
    return a_round(tmp_path)


def folder(round_: Round) -> Path:
    return round_.edges.inside("/etc/kubernetes/manifests")


def put(round_: Round, name: str, content: str | bytes) -> Path:
    path = folder(round_) / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def names(round_: Round) -> list[str]:
    return sorted(each.name for each in folder(round_).iterdir())


def aside(round_: Round) -> dict[str, str]:
    place = round_.edges.inside(ASIDE)
    return {each.name: each.read_text() for each in place.iterdir()} if place.is_dir() else {}


def next_report(round_: Round) -> str:
    """What one more round says."""
    round_.report = Report()
    sync(round_)
    return round_.report.sentence()


def test_the_backup_of_an_editor_is_set_aside_with_a_word_on_what_to_do(round_: Round) -> None:
    put(round_, "etcd.manifest", POD % "etcd-server")
    put(round_, "etcd.manifest~", POD % "etcd-server" + "# older\n")

    text = next_report(round_)

    assert names(round_) == ["etcd.manifest"]
    assert aside(round_) == {"etcd.manifest~.20270115T080000Z": POD % "etcd-server" + "# older\n"}
    assert text == (
        "manifests etcd.manifest~: set aside as /var/lib/protokube/set-aside/etcd.manifest~.20270115T080000Z, "
        "or the kubelet would run it beside ours: it names kube-system/etcd-server, as etcd.manifest does; "
        "change the spec instead, and keep copies in another folder"
    )
    assert next_report(round_) == ""


def test_what_was_set_aside_before_is_never_overwritten(round_: Round) -> None:
    for content in ("first", "second", "third"):
        put(round_, "etcd.manifest.bak", content)
        sync(round_)
    assert sorted(aside(round_).values()) == ["first", "second", "third"]
    assert len({name.split("Z")[0] for name in aside(round_)}) == 1


def test_pods_of_others_folders_dot_files_and_links_that_lead_nowhere_stay_and_are_not_talked_about(
    round_: Round,
) -> None:
    put(round_, "web.yaml", "kind: Pod\nmetadata: {name: web}\n---\nnot: [a pod\n")
    put(round_, "web.json", '{"kind": "Pod", "metadata": {"name": "other"}}')
    put(round_, ".etcd.manifest.swp", POD % "etcd-server")
    (folder(round_) / "etcd.manifest.d").mkdir()
    (folder(round_) / "etcd-old.manifest").symlink_to("/mnt/master-vol-gone/k8s.io/manifests/etcd.manifest")
    before = names(round_)

    assert next_report(round_) == ""
    assert names(round_) == before


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe", "it is not UTF-8"),
        ("{", "it is not JSON"),
        ("a: [", "it is not YAML"),
        ("- 1", "it is no pod"),
        ("", "it is no pod"),
        ("kind: List\nmetadata: {name: x}", "it is no pod"),
        ("kind: Pod\nmetadata: {namespace: x}", "its pod has no name"),
        (b" " * ((1 << 18) + 1), "it is larger than 262144 bytes"),
        ("[" * (1 << 18), "it is nested more than 100 levels deep"),
        ("kind: Pod\nmetadata: {name: [a]}", "its pod has no name"),
        ("kind: Pod\nmetadata: {name: ~}", "its pod has no name"),
        ("kind: Pod\nmetadata: {name: &a [*a]}", "its pod has no name"),
        ("- kind: Pod\n  metadata: {name: etcd-server}", "it is no pod"),
        ("&a {<<: *a}", "it is no pod"),
    ],
)
def test_what_cannot_be_read_as_a_pod_is_left_alone_and_told_once(
    round_: Round, content: str | bytes, why: str
) -> None:
    path = put(round_, "strange.manifest", content)
    assert next_report(round_) == f"manifests strange.manifest: left alone, not read as a pod: {why}"
    assert next_report(round_) == ""
    assert path.exists()

    path.unlink()
    assert next_report(round_) == ""
    put(round_, "strange.manifest", content)
    assert why in next_report(round_)


STRANGE = [
    "!!bool maybe", "!!int ''", "!!int _", "!!float ''", "!!timestamp soon", "!!binary '*'", "!!set [a]", "!!pairs [1]",
    "!!omap {a: b}", "!!null [x]", "!!python/object:os.system x", "!unknown {a: b}", "2026-99-99", "=", "<<", "0o9",
    "9999999999999:59:59.5", "190:20:30e400", "1e99999", "9" * 5000, ":".join(["59"] * 2000), '"\\UFFFFFFFF"',
    "&a [*a]", "*nobody", "{[a]: b}", "{{a: b}: c}", "? [x]", "%YAML 9.9", "\t", "\x07", "|\n", "''", "~",
]  # fmt: skip


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: ascii(value[:16]))
def test_values_of_any_kind_stop_nobody_and_hide_no_copy(round_: Round, value: str) -> None:
    put(round_, "strange.yaml", f"x: {value}\n")
    put(round_, "named.yaml", f"kind: Pod\nmetadata: {{name: web}}\nspec: {value}\n")
    put(round_, "copy.yaml", POD % "etcd-server" + "status: !!bool maybe\n")
    assert "copy.yaml: set aside as" in next_report(round_)
    assert names(round_) == ["named.yaml", "strange.yaml"]


PIECES = ["kind: Pod", "metadata:", " name: x", "<<: *a", "&a", "{", "}", "[", "]", "- ", ": ", "\n", "---\n", "? "]


@given(st.one_of(st.binary(max_size=200), st.lists(st.sampled_from([*PIECES, *STRANGE])).map(" ".join).map(str.encode)))
def test_whatever_a_file_holds_it_is_a_pod_or_it_is_told_why_not(content: bytes) -> None:
    found = verdict(content)
    assert "/" in found or found.startswith(("it is ", "its pod "))


def verdict(content: bytes) -> str:
    try:
        return identity(content)
    except NoPod as why:
        return str(why)


def test_a_pod_is_known_by_what_it_merges_in_and_by_what_stands_for_another_thing(round_: Round) -> None:
    text = "x: &x {name: no, namespace: kube-system}\ny: &y {name: etcd-server}\nk: &k Pod\n"
    put(round_, "merged.yaml", text + "kind: *k\nmetadata: {<<: [*y, *x]}\n")
    put(round_, "own.yaml", text + "kind: Pod\nmetadata: {<<: *y, name: web}\n")
    assert "merged.yaml: set aside as" in next_report(round_)
    assert names(round_) == ["own.yaml"]


def test_what_merges_in_the_same_thing_over_and_over_is_read_at_once(round_: Round) -> None:
    rows = ["a0: &a0 {b: c}"]
    rows += [f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 9)}]}}" for number in range(1, 60)]
    put(round_, "laughs.yaml", "\n".join([*rows, "kind: Pod", "metadata: *a59", ""]))
    assert next_report(round_) == "manifests laughs.yaml: left alone, not read as a pod: its pod has no name"


def test_a_file_of_the_spec_that_names_a_pod_of_ours_stays_and_needs_a_person(round_: Round) -> None:
    paths = ["/etc/kubernetes/manifests/mine.yaml", "/etc/kubernetes/./manifests//etcd.manifest.bak"]
    asset = FileText(text="", mode=0o644)
    round_.wanted = replace(round_.wanted, files=dict.fromkeys([*paths, "/etc/kubernetes/etcd.manifest~"], asset))
    for name in ("mine.yaml", "etcd.manifest.bak", "etcd.manifest~"):
        put(round_, name, POD % "etcd-server")

    assert "etcd.manifest~: set aside as" in next_report(round_)
    for _ in range(3):
        assert next_report(round_) == "; ".join(
            f"manifests {name}: NEEDS A PERSON: the spec asks for it, though it names kube-system/etcd-server, as "
            "etcd.manifest does"
            for name in ("etcd.manifest.bak", "mine.yaml")
        )
    assert len(aside(round_)) == 1


def test_a_pipe_with_the_name_of_a_manifest_stops_nobody(round_: Round) -> None:
    os.mkfifo(folder(round_) / "etcd.manifest~")
    assert next_report(round_) == ""
    assert names(round_) == ["etcd.manifest~"]


def test_a_file_that_changes_is_read_again(round_: Round) -> None:
    path = put(round_, "mine.yaml", POD % "web")
    assert next_report(round_) == ""
    path.write_text(POD % "etcd-server")
    assert "as etcd.manifest does" in next_report(round_)
    assert names(round_) == []


def test_a_folder_that_is_not_there_holds_nothing(round_: Round) -> None:
    folder(round_).rmdir()
    assert next_report(round_) == ""
    folder(round_).write_text("no folder")
    assert next_report(round_) == ""


def test_files_that_come_and_go_while_they_are_looked_at_are_no_trouble(round_: Round) -> None:
    over, content = threading.Event(), POD % "etcd-server"

    def disturb() -> None:
        while not over.is_set():
            for name in ("etcd.manifest~", "mine.yaml"):
                put(round_, name, content).unlink(missing_ok=True)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        for _ in range(300):
            sync(round_)
    finally:
        over.set()
        other.join()
    sync(round_)
    assert round_.report.waits == []
    assert names(round_) == []


def test_one_that_cannot_be_moved_is_told_and_keeps_no_other_where_it_is(round_: Round) -> None:
    put(round_, "etcd.manifest~", POD % "etcd-server")
    round_.edges.inside("/var/lib").mkdir(parents=True)
    round_.edges.inside("/var/lib/protokube").write_text("in the way")
    assert next_report(round_) == (
        "manifests etcd.manifest~: waits: cannot be set aside (it names kube-system/etcd-server, as etcd.manifest "
        "does): Not a directory"
    )
    round_.edges.inside("/var/lib/protokube").unlink()
    assert "set aside as" in next_report(round_)


def test_a_name_that_no_log_can_take_is_shown_in_letters_that_it_can(round_: Round) -> None:
    put(round_, os.fsdecode(b"bad\xff\nname"), POD % "etcd-server")
    assert next_report(round_).startswith("manifests 'bad\\udcff\\nname': set aside as")
    assert names(round_) == []


def test_a_name_as_long_as_names_can_be_is_set_aside_too(round_: Round) -> None:
    put(round_, "x" * 255, POD % "etcd-server")
    assert "set aside as" in next_report(round_)
    assert list(aside(round_).values()) == [POD % "etcd-server"]
