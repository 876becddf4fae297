"""`protokube status`: the screen, the changes in a pipe, the data, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.command import Call
from builders.view import (
    CLUSTER,
    FakeCloud,
    ShortFolder,
    a_note,
    a_view,
    an_agent,
    but,
    cloud_rows,
    write_state,
)
from protokube.errors import ExitCode

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


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


def test_the_only_cluster_is_meant_where_none_is_named(call: Call, state: Path) -> None:
    paths = write_state(state, VIEW)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        answer = call("status")

    assert answer.code == ExitCode.TRY_LATER
    assert answer.out.startswith(f"{CLUSTER}: not ready (3 hosts, 0 of 3 members healthy)\n")
    assert "  etcd-a on master-0 is not healthy: no port of this machine leads to it yet\n" in answer.out
    assert "\x1b" not in answer.out
    assert answer.err == ""


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_snapshot_as_data(call: Call, state: Path, output: str, read: Any) -> None:
    paths = write_state(state, VIEW)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        answer = call("status", "-o", output)

    tree = read(answer.out)
    assert (answer.code, tree["cluster"], tree["ready"]) == (ExitCode.TRY_LATER, CLUSTER, False)
    assert [each["id"] for each in tree["disks"]] == ["vol-aaaa", "vol-bbbb", "vol-cccc"]


def test_waiting_for_data_tells_the_changes_on_the_side_and_the_snapshot_once(call: Call, state: Path) -> None:
    paths = write_state(state, VIEW)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        answer = call("status", "--wait", "--timeout", "300ms", "-o", "json")

    assert json.loads(answer.out)["cluster"] == CLUSTER
    assert answer.err.startswith(f"{CLUSTER}: not ready")


def test_waiting_in_a_pipe_prints_what_changes(call: Call, state: Path) -> None:
    paths = write_state(state, VIEW)
    changed = cloud_rows(VIEW)
    rows = iter([changed["hosts"], changed["hosts"][:2]])
    last = [changed["hosts"]]

    def hosts(_: dict[str, Any]) -> Any:
        last[0] = next(rows, last[0])
        return last[0]

    with FakeCloud(paths.admin_socket, {**changed, "hosts": hosts}):
        answer = call("status", "--wait", "--timeout", "2s")  # time for a second look, on a busy machine too

    assert answer.code == ExitCode.TRY_LATER
    assert answer.out.count("master-2 is gone") == 1
    assert answer.out.count("not ready (") == 1


def test_a_person_who_is_needed_makes_the_code_say_so(call: Call, state: Path) -> None:
    paths = write_state(state, STUCK)
    with FakeCloud(paths.admin_socket, cloud_rows(STUCK)):
        answer = call("status")

    assert answer.code == ExitCode.REFUSED
    assert "    hint: look for a copy of the disk\n" in answer.out
