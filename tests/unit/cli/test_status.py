"""`protokube status`: the screen, the changes in a pipe, the data, and the exit code."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from builders.command import Call
from builders.view import (
    CLUSTER,
    NOW,
    ShortFolder,
    a_host,
    a_note,
    a_view,
    an_agent,
    but,
    write_state,
)
from protokube.cli.render.status import disks, host_state, outcome, render_changes, render_status
from protokube.cli.render.table import lasting, several, size, table
from protokube.cli.render.tree import disk_tree, view_tree
from protokube.cli.shared.cluster_view import follow
from protokube.cli.shared.screen import Screen, fit, paint
from protokube.cli.status import stay
from protokube.errors import ExitCode
from protokube.members.survey.listing import list_tree
from protokube.view.cluster import ClusterView
from protokube.view.values import DaemonView

VIEW = a_view()
REFUSED = a_note(
    "vol-bbbb was marked 'formed' and turns up blank", about="main/b", saw="zeros", hint="look for a copy of the disk"
)
STUCK = a_view(
    members=but(VIEW.members, 1, healthy=False, why="connection refused"),
    agents=(
        an_agent(0),
        an_agent(1, person=(REFUSED,), waits=(a_note("the others", about="main/b", lasted=4),)),
        an_agent(2),
    ),
)
ILL = replace(STUCK, agents=VIEW.agents)
"""The same, and no agent asks for a person."""


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


# The screen.


def test_the_screen_of_a_cluster_that_is_ready() -> None:
    assert (
        "\n".join(render_status(VIEW))
        == f"""\
{CLUSTER}: ready (3 hosts, 3 of 3 members healthy)

HOST      GROUP    ADDRESS     STATE         REPORT   ROUND
master-0  masters  10.77.0.11  up for 5 min  2 s ago  7, elected
master-1  masters  10.77.0.12  up for 5 min  2 s ago  7
master-2  masters  10.77.0.13  up for 5 min  2 s ago  7

DISK      MEMBER  SIZE    HOLDER    PHASE    MARK    EPOCH
vol-aaaa  main/a  20 GiB  master-0  serving  formed  1
vol-bbbb  main/b  20 GiB  master-1  serving  formed  1
vol-cccc  main/c  20 GiB  master-2  serving  formed  1

MEMBER  HOST      STATE     TERM  REVISION  DB      ETCD
etcd-a  master-0  leader    2     10        20 KiB  3.5.1
etcd-b  master-1  follower  2     10        20 KiB  3.5.1
etcd-c  master-2  follower  2     10        20 KiB  3.5.1

NAME                       ADDRESS
api.internal.{CLUSTER}     10.77.0.11, 10.77.0.12, 10.77.0.13
etcd-a.internal.{CLUSTER}  10.77.0.11
etcd-b.internal.{CLUSTER}  10.77.0.12
etcd-c.internal.{CLUSTER}  10.77.0.13"""
    )


def test_what_is_waited_for_and_what_needs_a_person_stand_at_the_end_with_times_and_hints() -> None:
    lines = render_status(STUCK)

    assert lines[0] == f"{CLUSTER}: needs a person (3 hosts, 2 of 3 members healthy)"
    assert lines[lines.index("not ready:") :] == [
        "not ready:",
        "  etcd-b on master-1 is not healthy: connection refused",
        "waiting:",
        "  master-1, main/b: the others, for 6 s",
        "needs a person:",
        "  master-1, main/b: vol-bbbb was marked 'formed' and turns up blank",
        "    saw:  zeros",
        "    hint: look for a copy of the disk",
    ]


def test_a_cloud_that_does_not_run_says_what_to_do() -> None:
    members = tuple(replace(each, healthy=False, asked=False) for each in VIEW.members)
    lines = render_status(a_view(daemon=DaemonView(alive=False, why="nobody listens"), members=members))

    assert any(line.split()[:3] == ["etcd-a", "master-0", "unknown"] for line in lines)
    assert lines[lines.index("not ready:") :] == [
        "not ready:",
        "  the local cloud does not run: nobody listens",
        "needs a person:",
        "  the local cloud does not run",
        "    hint: `protokube up --cluster dev.local` starts it and goes on with what runs",
    ]


def test_a_cluster_that_was_stopped_says_so_and_what_starts_it() -> None:
    lines = render_status(a_view(daemon=DaemonView(alive=False, why="nobody listens", stopped=True)))

    assert lines[0].startswith(f"{VIEW.cluster}: stopped (")
    assert lines[lines.index("not ready:") + 1] == "  the cluster is stopped"
    assert lines[lines.index("needs a person:") + 1 :] == [
        "  the cluster is stopped",
        "    hint: `protokube start --cluster dev.local`",
    ]


def test_a_bug_of_an_agent_and_what_could_not_be_seen_are_said() -> None:
    agents = (an_agent(0, bugs=(a_note("KeyError: 'x'", step="names"),)), *VIEW.agents[1:])
    lines = render_status(a_view(agents=agents, notes=("cloud.sqlite is not there",)))

    assert lines[-4:] == [
        "broken, please report it:",
        "  master-0, names: KeyError: 'x'",
        "not seen:",
        "  cloud.sqlite is not there",
    ]


def test_nothing_at_all_is_a_screen_too() -> None:
    empty = ClusterView(cluster="dev", at=NOW, daemon=DaemonView(alive=True))

    assert render_status(empty) == [
        "dev: not ready (0 hosts, 0 of 0 members healthy)",
        "",
        "not ready:",
        "  nothing is known of its members yet",
    ]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "up for 5 min"),
        ({"since": None}, "up"),
        ({"alive": False}, "not running"),
        ({"dead": True}, "declared dead, still runs"),
        ({"dead": True, "alive": False}, "dead"),
    ],
)
def test_a_host_is_said_to_be_what_it_is(changes: dict[str, Any], state: str) -> None:
    assert host_state(a_host(0, **changes), NOW) == state


def test_the_exit_code_says_who_has_to_act() -> None:
    assert outcome(VIEW) is ExitCode.OK
    assert outcome(ILL) is ExitCode.TRY_LATER
    assert outcome(STUCK) is ExitCode.REFUSED


def test_a_person_is_needed_also_while_the_cluster_serves_and_the_first_line_says_both() -> None:
    serving = a_view(agents=but(VIEW.agents, 0, person=(REFUSED,)))

    assert serving.ready
    assert outcome(serving) is ExitCode.REFUSED
    assert render_status(serving)[0] == f"{CLUSTER}: serving, and needs a person (3 hosts, 3 of 3 members healthy)"


# Changes, for a pipe.


def test_the_first_line_says_what_is_lacking() -> None:
    assert render_changes(None, STUCK) == [
        f"{CLUSTER}: needs a person (3 hosts, 2 of 3 members healthy)",
        "  etcd-b on master-1 is not healthy: connection refused",
        "  needs a person: master-1, main/b: vol-bbbb was marked 'formed' and turns up blank",
        "  needs a person:   saw:  zeros",
        "  needs a person:   hint: look for a copy of the disk",
    ]


def test_nothing_that_stayed_the_same_is_told_again() -> None:
    later = a_view(at=NOW + 60, members=tuple(replace(each, revision=99) for each in VIEW.members))

    assert render_changes(VIEW, later) == []


def test_each_change_is_one_line() -> None:
    later = a_view(
        daemon=DaemonView(alive=False),
        hosts=(a_host(0, alive=False), a_host(1), a_host(3)),
        disks=(replace(VIEW.disks[0], attached_to=None, phase="free"), *VIEW.disks[1:]),
        members=but(VIEW.members, 0, healthy=False, host=None),
        records=VIEW.records[1:],
        agents=(an_agent(1, person=(REFUSED,)),),
    )

    assert render_changes(VIEW, later) == [
        "the local cloud does not run",
        "master-0 (10.77.0.11) is not running",
        "master-2 is gone",
        "master-3 (10.77.0.14) is up",
        "vol-aaaa (main/a) is free, marked formed, epoch 1",
        "etcd-a is not healthy",
        f"api.internal.{CLUSTER} -> nothing",
        "needs a person: the local cloud does not run",
        "needs a person:   hint: `protokube up --cluster dev.local` starts it and goes on with what runs",
        "needs a person: master-1, main/b: vol-bbbb was marked 'formed' and turns up blank",
        "needs a person:   saw:  zeros",
        "needs a person:   hint: look for a copy of the disk",
        f"{CLUSTER}: needs a person (2 hosts, 2 of 3 members healthy)",
    ]


def test_a_volume_that_moves_is_told_with_its_new_holder_and_epoch() -> None:
    later = a_view(
        disks=but(VIEW.disks, 0, attached_to="master-3", epoch=2, phase=""), agents=but(VIEW.agents, 0, phases={})
    )

    assert render_changes(VIEW, later) == ["vol-aaaa (main/a) is on master-3, attached, marked formed, epoch 2"]


def test_a_volume_that_is_being_detached_is_told_so_in_the_table_the_changes_and_the_data() -> None:
    served = a_view(disks=but(VIEW.disks, 0, state="detaching"))
    nobodys = a_view(disks=but(VIEW.disks, 0, attached_to=None, phase="taken", state="detaching"))

    assert any("serving, detaching" in line for line in disks(served))
    assert any("taken, detaching" in line for line in disks(nobodys))
    assert "vol-aaaa (main/a) is held by nobody, detaching, marked formed, epoch 1" in render_changes(VIEW, nobodys)
    assert [disk_tree(view, view.disks[0])["state"] for view in (VIEW, served)] == ["settled", "detaching"]


# Waiting.


def staying(*views: ClusterView, redraw: bool = False) -> tuple[ClusterView, str]:
    out = io.StringIO()
    seen = stay(iter(views), Screen(out, redraw=redraw))
    return seen, out.getvalue()


def test_waiting_ends_as_soon_as_it_is_ready() -> None:
    seen, output = staying(ILL, ILL, VIEW, STUCK)

    assert seen == VIEW
    assert output.splitlines()[2:] == [
        "etcd-b is follower on master-1",
        f"{CLUSTER}: ready (3 hosts, 3 of 3 members healthy)",
    ]


def test_waiting_ends_when_a_person_has_been_needed_for_a_while() -> None:
    views = [replace(STUCK, at=NOW + second) for second in range(20)]
    seen, _ = staying(*views)

    assert seen.at == NOW + 5


def test_a_need_that_passes_by_itself_does_not_end_the_waiting() -> None:
    views = [
        replace(STUCK, at=NOW + 1),
        replace(ILL, at=NOW + 4),
        replace(STUCK, at=NOW + 7),
        replace(VIEW, at=NOW + 9),
    ]
    seen, _ = staying(*views)

    assert seen.ready


def test_when_the_time_is_up_the_last_view_is_the_answer() -> None:
    assert staying(ILL, replace(ILL, at=NOW + 1))[0].at == NOW + 1


def test_a_terminal_is_redrawn_in_place_and_ends_with_the_whole_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "8")
    _, output = staying(ILL, VIEW, redraw=True)

    frames = [click.unstyle(each).splitlines() for each in output.split("\x1b[J")[1:]]
    assert [len(frame) for frame in frames[:2]] == [7, 7]
    assert all(len(line) <= 40 for frame in frames[:2] for line in frame)
    assert frames[0][0].startswith(f"{CLUSTER}: not ready")
    assert output.count("\x1b[7F") == 2
    assert frames[-1] == render_status(VIEW)


def test_a_screen_that_is_too_high_keeps_its_first_line_and_its_end() -> None:
    assert fit(["a", "", "b", "", "c"], 5) == ["a", "", "b", "", "c"]
    assert fit(["a", "", "b", "", "c"], 4) == ["a", "b", "c"]
    assert fit(["a", "", "b", "", "c", "d"], 3) == ["a", "c", "d"]
    assert fit(["a", "b", "c"], 0) == ["a", "c"]


def test_headings_and_needs_are_painted_and_the_rest_is_not() -> None:
    assert paint("  etcd-a is not healthy") == "  etcd-a is not healthy"
    assert paint("waiting:") == click.style("waiting:", bold=True)
    assert paint("needs a person:") == click.style("needs a person:", fg="red", bold=True)
    assert paint("HOST  GROUP") == click.style("HOST  GROUP", dim=True)


def test_following_looks_once_more_when_the_time_is_up() -> None:
    clock = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    views = list(follow(lambda: VIEW, 1.0, every=0.4, now=lambda: clock[0], sleep=sleep))

    assert len(views) == 4
    assert slept == pytest.approx([0.4, 0.4, 0.2])


def test_a_look_that_takes_long_is_followed_by_the_next_one_at_once() -> None:
    clock = [0.0]
    slept: list[float] = []

    def slow() -> ClusterView:
        clock[0] += 2.0
        return VIEW

    list(follow(slow, 3.0, every=0.4, now=lambda: clock[0], sleep=slept.append))

    assert slept == [0.01]


# Small words.


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.44, "0.4 s"), (0.99, "1 s"), (59, "59 s"), (130, "2 min"), (7300, "2 h"), (200000, "2 d")],
)
def test_a_time_is_one_number(seconds: float, text: str) -> None:
    assert lasting(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (512, "512 B"), (20480, "20 KiB"), (5 << 20, "5 MiB"), (20 << 30, "20 GiB"), (3 << 40, "3 TiB")],
)
def test_a_size_is_one_number(count: int, text: str) -> None:
    assert size(count) == text


def test_a_table_without_rows_is_nothing_and_what_has_nothing_to_say_is_a_dash() -> None:
    assert table(("A", "B"), []) == []
    assert table(("NAME", "B"), [("x", ""), ("y", "long")]) == ["NAME  B", "x     -", "y     long"]
    assert (several(1, "host"), several(2, "host")) == ("1 host", "2 hosts")


# As data.


def test_the_data_say_what_the_screen_says() -> None:
    tree = view_tree(STUCK)

    assert (tree["ready"], tree["lacks"]) == (False, ["etcd-b on master-1 is not healthy: connection refused"])
    assert tree["members"][0]["id"] == "a0"
    assert [each["leader"] for each in tree["members"]] == [True, False, False]
    assert tree["waiting"] == [
        {"host": "master-1", "step": "volumes", "about": "main/b", "text": "the others", "seconds": 6.0}
    ]
    assert tree["needsAPerson"][0]["hint"] == "look for a copy of the disk"
    assert tree["generations"]["main"]["open"] is False
    assert json.loads(json.dumps(tree)) == tree


def test_equal_member_lists_give_equal_bytes_in_whatever_order_they_come() -> None:
    members = VIEW.listed("main")

    assert json.dumps(list_tree(members)) == json.dumps(list_tree(tuple(reversed(members))))
    assert list_tree(members)[0] == {
        "id": "a0",
        "name": "etcd-a",
        "peerURLs": [f"https://etcd-a.internal.{CLUSTER}:2380"],
        "clientURLs": [f"https://etcd-a.internal.{CLUSTER}:4001"],
        "learner": False,
    }


# The command.


def test_without_any_cluster_the_way_to_one_is_said(call: Call, state: Path) -> None:
    answer = call("status")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert "there is no local cluster" in answer.err
    assert "protokube up" in answer.err


def test_of_several_clusters_one_has_to_be_named(call: Call, state: Path) -> None:
    for name in ("one", "two"):
        write_state(state, VIEW, name)
    answer = call("status")

    assert answer.code == ExitCode.INVALID
    assert "one, two" in answer.err
    assert "--cluster" in answer.err


def test_a_cluster_that_is_not_there_is_said(call: Call, state: Path) -> None:
    write_state(state, VIEW, "one")

    assert call("status", "--cluster", "oen").code == ExitCode.INVALID
