"""The guard of the kubelet's folder, on a real one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from helpers_agent import a_turn
from protokube.agent.manifestguard import ASIDE, guard_sync
from protokube.agent.report import Report
from protokube.agent.world import Turn

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: kube-system}\nspec: {}\n"


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    (tmp_path / "etc/kubernetes/manifests").mkdir(parents=True)
    return a_turn(tmp_path)


def folder(turn: Turn) -> Path:
    return turn.world.inside("/etc/kubernetes/manifests")


def put(turn: Turn, name: str, content: str | bytes) -> Path:
    path = folder(turn) / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def names(turn: Turn) -> list[str]:
    return sorted(each.name for each in folder(turn).iterdir())


def aside(turn: Turn) -> dict[str, str]:
    place = turn.world.inside(ASIDE)
    return {each.name: each.read_text() for each in place.iterdir()} if place.is_dir() else {}


def said(turn: Turn) -> str:
    """What one more round says."""
    turn.report = Report()
    guard_sync(turn)
    return turn.report.sentence()


def test_the_backup_of_an_editor_is_set_aside_with_a_word_on_what_to_do(turn: Turn) -> None:
    put(turn, "etcd.manifest", POD % "etcd-server")
    put(turn, "etcd.manifest~", POD % "etcd-server" + "# older\n")

    told = said(turn)

    assert names(turn) == ["etcd.manifest"]
    assert aside(turn) == {"etcd.manifest~.20270115T080000Z": POD % "etcd-server" + "# older\n"}
    assert told == (
        "manifests etcd.manifest~: set aside as /var/lib/protokube/set-aside/etcd.manifest~.20270115T080000Z, "
        "or the kubelet would run it beside ours: it names kube-system/etcd-server, as etcd.manifest does; "
        "change the spec instead, and keep copies in another folder"
    )
    assert said(turn) == ""


def test_what_was_set_aside_before_is_never_overwritten(turn: Turn) -> None:
    for content in ("first", "second", "third"):
        put(turn, "etcd.manifest.bak", content)
        guard_sync(turn)
    assert sorted(aside(turn).values()) == ["first", "second", "third"]
    assert len({name.split("Z")[0] for name in aside(turn)}) == 1


def test_pods_of_others_folders_dot_files_and_links_that_lead_nowhere_stay_and_are_not_talked_about(turn: Turn) -> None:
    put(turn, "web.yaml", "kind: Pod\nmetadata: {name: web}\n---\nnot: [a pod\n")
    put(turn, "web.json", '{"kind": "Pod", "metadata": {"name": "other"}}')
    put(turn, ".etcd.manifest.swp", POD % "etcd-server")
    (folder(turn) / "etcd.manifest.d").mkdir()
    (folder(turn) / "etcd-old.manifest").symlink_to("/mnt/master-vol-gone/k8s.io/manifests/etcd.manifest")
    before = names(turn)

    assert said(turn) == ""
    assert names(turn) == before


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
        (b" " * ((1 << 20) + 1), "it is larger than 1048576 bytes"),
    ],
)
def test_what_cannot_be_read_as_a_pod_is_left_alone_and_told_once(turn: Turn, content: str | bytes, why: str) -> None:
    path = put(turn, "strange.manifest", content)
    assert said(turn) == f"manifests strange.manifest: left alone, and no pod to us: {why}"
    assert said(turn) == ""
    assert path.exists()

    path.unlink()
    assert said(turn) == ""
    put(turn, "strange.manifest", content)
    assert why in said(turn)


def test_a_pipe_with_the_name_of_a_manifest_stops_nobody(turn: Turn) -> None:
    os.mkfifo(folder(turn) / "etcd.manifest~")
    assert said(turn) == ""
    assert names(turn) == ["etcd.manifest~"]


def test_a_file_that_changes_is_read_again(turn: Turn) -> None:
    path = put(turn, "mine.yaml", POD % "web")
    assert said(turn) == ""
    path.write_text(POD % "etcd-server")
    assert "as etcd.manifest does" in said(turn)
    assert names(turn) == []


def test_a_folder_that_is_not_there_holds_nothing(turn: Turn) -> None:
    folder(turn).rmdir()
    assert said(turn) == ""
    folder(turn).write_text("no folder")
    assert said(turn) == ""


def test_files_that_come_and_go_while_they_are_looked_at_are_no_trouble(turn: Turn) -> None:
    over, content = threading.Event(), POD % "etcd-server"

    def disturb() -> None:
        while not over.is_set():
            for name in ("etcd.manifest~", "mine.yaml"):
                put(turn, name, content).unlink(missing_ok=True)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        for _ in range(300):
            guard_sync(turn)
    finally:
        over.set()
        other.join()
    guard_sync(turn)
    assert turn.report.waits == []
    assert names(turn) == []


def test_one_that_cannot_be_moved_is_told_and_keeps_no_other_where_it_is(turn: Turn) -> None:
    put(turn, "etcd.manifest~", POD % "etcd-server")
    turn.world.inside("/var/lib").mkdir(parents=True)
    turn.world.inside("/var/lib/protokube").write_text("in the way")
    assert said(turn) == (
        "manifests etcd.manifest~: waits: cannot be set aside (it names kube-system/etcd-server, as etcd.manifest "
        "does): Not a directory"
    )
    turn.world.inside("/var/lib/protokube").unlink()
    assert "set aside as" in said(turn)


def test_a_name_that_no_log_can_take_is_shown_in_letters_that_it_can(turn: Turn) -> None:
    put(turn, os.fsdecode(b"bad\xff\nname"), POD % "etcd-server")
    assert said(turn).startswith("manifests 'bad\\udcff\\nname': set aside as")
    assert names(turn) == []


def test_a_name_as_long_as_names_can_be_is_set_aside_too(turn: Turn) -> None:
    put(turn, "x" * 255, POD % "etcd-server")
    assert "set aside as" in said(turn)
    assert list(aside(turn).values()) == [POD % "etcd-server"]
