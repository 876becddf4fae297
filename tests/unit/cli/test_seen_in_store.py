"""`--store`: status, explain, members and revisions of a cluster, from its store and nothing else."""

from __future__ import annotations

import json
import os
import re
import time
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest

from builders.command import Answer, Call
from builders.published import a_record, a_store, noted, seen
from builders.view import CLUSTER, NOW
from protokube.cli.shared.cluster_view import FailedLooks, follow
from protokube.cli.shared.offered import offer_clusters
from protokube.cli.shared.screen import Screen
from protokube.cli.status import stay
from protokube.local.base.paths import Paths
from protokube.store.file import FileStore
from protokube.view.cluster import ClusterView, Standing
from protokube.view.stored import StoredSource


def fresh(number: int, *, age: float = 2.0, **changes: Any) -> dict[str, Any]:
    """As of now: commands look at the clock of this machine."""
    return a_record(number, age=age + NOW - time.time(), **changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "store", *(fresh(number) for number in range(3)))


def fill(folder: Path, *records: dict[str, Any], cluster: str = CLUSTER) -> Path:
    known = a_store(*records)
    store = FileStore(folder)
    for path in known.list_paths():
        found, place = known.read(path), path.replace(CLUSTER, cluster, 1)
        store.put(place, found.data)
        assert found.modified is not None
        os.utime(folder / place, (found.modified, found.modified))
    return folder


def run(call: Call, folder: Path, *arguments: str) -> Answer:
    return call(*arguments, "--store", f"file://{folder}")


def test_status_shows_a_cluster_that_is_nowhere_near(call: Call, folder: Path) -> None:
    result = run(call, folder, "status")

    assert result.code == 0
    assert result.out.splitlines()[0] == f"{CLUSTER}: ready (3 hosts, 3 of 3 members healthy)"
    assert f"as the agents reported it to file://{folder}" in result.out
    assert "live" in result.out


def test_the_data_have_the_parts_of_a_local_cluster_with_null_for_what_only_it_has(call: Call, folder: Path) -> None:
    tree = json.loads(run(call, folder, "status", "-o", "json").out)

    assert (tree["ready"], tree["daemon"], tree["outside"]) == (True, None, None)
    assert tree["source"] == f"file://{folder}"
    assert {(each["pid"], each["since"], each["connectedTo"]) for each in tree["hosts"]} == {(None, None, None)}
    assert {each["url"] for each in tree["members"]} == {None}


def test_status_ends_with_the_same_codes_as_for_a_local_cluster(call: Call, tmp_path: Path) -> None:
    person = noted(fresh(0), "needsAPerson", "vol-aaaa is not blank", about="main/a")
    assert run(call, fill(tmp_path / "a", person, fresh(1), fresh(2)), "status").code == 4
    assert run(call, fill(tmp_path / "b", fresh(0), fresh(1)), "status").code == 3


def test_waiting_for_a_cluster_in_a_store_ends_once_it_is_ready(call: Call, folder: Path) -> None:
    assert run(call, folder, "status", "--wait", "--timeout", "1s").code == 0


def test_old_reports_are_shown_as_old(call: Call, tmp_path: Path) -> None:
    folder = fill(tmp_path / "store", *(fresh(number, age=720) for number in range(3)))
    result = run(call, folder, "status")

    assert result.code == 3
    assert "12 min ago, overdue" in result.out
    assert "the agent of master-0 has reported nothing for 72" in result.out


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (("volume", "vol-aaaa"), "master-0 (10.77.0.11), live"),
        (("member", "etcd-b"), "etcd-b.internal.dev.local -> 10.77.0.12"),
        (("record", "api.internal.dev.local"), "10.77.0.11, 10.77.0.12, 10.77.0.13"),
    ],
)
def test_explain_has_everything_from_the_store(call: Call, folder: Path, what: tuple[str, str], sentence: str) -> None:
    result = run(call, folder, "explain", *what)

    assert result.code == 0
    assert sentence in result.out
    assert "next: nothing: it is in order" in result.out
    assert "reached at" not in result.out


def test_explain_does_not_mix_a_store_with_a_zone(call: Call, folder: Path) -> None:
    result = run(call, folder, "explain", "record", "web.example.com", "--dns", "aws-route53")

    assert (result.code, "--store does not go with --dns" in result.err) == (2, True)


def test_members_are_listed_as_a_master_last_read_them(call: Call, folder: Path) -> None:
    tree = json.loads(run(call, folder, "etcd", "members", "-o", "json").out)

    assert [(each["id"], each["name"], each["healthy"], each["host"]) for each in tree["main"]] == [
        ("a0", "etcd-a", True, "master-0"), ("a1", "etcd-b", True, "master-1"), ("a2", "etcd-c", True, "master-2"),
    ]  # fmt: skip
    assert run(call, folder, "etcd", "members").out.startswith("as the agents reported it to ")


def test_revisions_and_their_rollout_are_in_the_store(call: Call, folder: Path) -> None:
    status = run(call, folder, "rollout", "status")
    assert (status.code, f"{CLUSTER}: revision 1, done" in status.out, "master-2" in status.out) == (0, True, True)
    assert "operator" in run(call, folder, "rollout", "history").out


def test_with_several_clusters_one_is_named(call: Call, folder: Path) -> None:
    fill(folder, fresh(0), cluster="other.local")
    result = run(call, folder, "status")
    assert result.code == 2
    assert f"there are several clusters in file://{folder}: {CLUSTER}, other.local" in result.err

    assert run(call, folder, "status", "--cluster", CLUSTER).code == 0


@pytest.mark.parametrize("name", ["nobody.local", "../etc"])
def test_a_cluster_that_is_not_there_is_bad_input(call: Call, folder: Path, name: str) -> None:
    result = run(call, folder, "status", "--cluster", name)

    assert result.code == 2
    assert name in result.err


@pytest.mark.parametrize("command", [("rollout", "status"), ("rollout", "history"), ("etcd", "members")])
def test_no_command_takes_a_cluster_that_is_not_there_for_an_empty_one(
    call: Call, folder: Path, command: tuple[str, ...]
) -> None:
    result = run(call, folder, *command, "--cluster", "nope")

    assert (result.code, "there is no cluster 'nope'" in result.err) == (2, True)


def test_a_rollout_is_shown_although_no_report_can_be_read(call: Call, tmp_path: Path) -> None:
    result = run(call, fill(tmp_path / "store"), "rollout", "status")

    assert result.code == 0
    assert f"{CLUSTER}: revision 1, done" in result.out
    assert f"no agent of {CLUSTER} has reported yet" in result.err


def test_waiting_goes_on_while_the_store_has_nothing_to_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fill(tmp_path / "store")
    source = StoredSource(FileStore(folder), CLUSTER)

    def masters_come_up(_seconds: float) -> None:
        fill(folder, *(fresh(number) for number in range(3)))

    views = follow(source.look, 30, sleep=masters_come_up, tell=FailedLooks())
    found = stay(views, Screen(StringIO(), redraw=False))

    assert found.ready
    assert capsys.readouterr().err == f"waiting: no agent of {CLUSTER} has reported yet\n"


def test_waiting_for_nothing_ends_with_the_reason_when_the_time_is_over(call: Call, tmp_path: Path) -> None:
    result = run(call, fill(tmp_path / "store"), "status", "--wait", "--timeout", "0s")

    assert (result.code, f"no agent of {CLUSTER} has reported yet" in result.err) == (3, True)


def test_a_need_that_was_published_once_does_not_end_waiting() -> None:
    def at(seconds: float, published: float) -> ClusterView:
        record = noted(a_record(0, age=-published), "needsAPerson", "vol-aaaa is not blank", about="main/a")
        return seen(record, a_record(1), a_record(2), now=NOW + seconds)

    standing = Standing()
    assert [standing.feed(at(seconds, 0.0)) for seconds in (0.0, 30.0, 55.0)] == [0.0] * 3
    assert standing.feed(at(61.0, 60.0)) == 61.0


def test_what_the_store_itself_shows_needs_no_second_publication() -> None:
    standing = Standing()
    views = [
        seen(*(a_record(number) for number in range(3)), now=NOW + after, generation=False) for after in (0.0, 6.0)
    ]

    assert [standing.feed(each) for each in views] == [0.0, 6.0]


def test_the_age_of_what_is_seen_is_plain(call: Call, tmp_path: Path) -> None:
    folder = fill(tmp_path / "store", *(fresh(number, age=240) for number in range(3)))

    assert re.search(r"reported it to .* 4 min ago; what happened since is not in it", run(call, folder, "status").out)
    tree = json.loads(run(call, folder, "status", "-o", "json").out)
    assert 240 <= tree["ages"]["newest"] <= tree["ages"]["oldest"] <= 300
    assert {each["state"] for each in tree["hosts"]} == {"live"}
    assert all(each["asked"] and each["askedBy"].startswith("master-") for each in tree["members"])
    (row, *_) = json.loads(run(call, folder, "etcd", "members", "-o", "json").out)["main"]
    assert (row["source"], 240 <= row["age"] <= 300) == (f"file://{folder}", True)


def test_members_that_nobody_asked_are_not_said_to_lack_a_quorum(call: Call, tmp_path: Path) -> None:
    folder = fill(tmp_path / "store", *(fresh(number, age=900) for number in range(3)))
    result = run(call, folder, "etcd", "members")

    assert (result.code, "main: nobody has asked its members lately" in result.out) == (3, True)


def test_after_a_store_no_local_cluster_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))
    Paths.of("laptop").create()
    command, option = click.Command("status"), click.Option(["--cluster"])
    context = click.Context(command)
    context.params = {"store_url": None}
    assert offer_clusters(context, option, "") == ["laptop"]

    context.params = {"store_url": "s3://bucket"}
    assert offer_clusters(context, option, "") == []


def test_a_store_that_is_not_there_holds_no_cluster(call: Call, tmp_path: Path) -> None:
    result = run(call, tmp_path / "nothing", "status")

    assert (result.code, "there is no cluster in file://" in result.err) == (2, True)


def test_before_the_first_report_the_answer_is_to_wait(call: Call, tmp_path: Path) -> None:
    result = run(call, fill(tmp_path / "store"), "status")

    assert (result.code, f"no agent of {CLUSTER} has reported yet" in result.err) == (3, True)


def test_a_store_for_other_commands_does_not_hide_a_local_cluster(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROTOKUBE_STORE", f"file://{folder}")
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path / "empty"))

    assert "there is no local cluster" in call("status").err
