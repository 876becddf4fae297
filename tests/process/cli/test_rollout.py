"""`protokube rollout status`: how far a revision has come, for a person, as data and as an exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from builders.command import Call
from builders.revisions import a_revision
from builders.view import CLUSTER, FakeCloud, ShortFolder, a_view, an_agent, cloud_rows, write_state
from protokube.errors import ExitCode
from protokube.launch.revisions import change_rollout, put_in_force
from protokube.launch.rollout import Failure, State, Turn
from protokube.local.base.paths import Paths
from protokube.store.file import FileStore

VIEW = a_view(agents=tuple(an_agent(number, revision=revision) for number, revision in enumerate((2, 1, None))))
FAILURE = Failure(machine="i-1", name="master-1", revision=2, text="main/b: it does not run after 60 s")
TURN = Turn(machine="i-1", name="master-1", at=5.0)


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """A cluster where revision 2 is being rolled out; two hosts of three say what they run."""
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        made = write_state(folder, VIEW)
        store = FileStore(made.store)
        for number in (1, 2):
            put_in_force(store, CLUSTER, a_revision(number), running=True)
        yield made


def change(paths: Paths, **fields: Any) -> None:
    change_rollout(FileStore(paths.store), CLUSTER, lambda known: replace(known, **fields))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state": State.DONE}, ExitCode.OK),
        ({"state": State.ROLLING}, ExitCode.TRY_LATER),
        ({"state": State.STOPPED, "failure": FAILURE}, ExitCode.REFUSED),
    ],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_the_exit_code_says_how_far_it_is(
    call: Call, paths: Paths, fields: dict[str, Any], code: ExitCode, output: str
) -> None:
    change(paths, **fields)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        assert call("rollout", "status", "-o", output).code == code


def test_the_screen_shows_what_each_host_runs(call: Call, paths: Paths) -> None:
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        lines = call("rollout", "status").out.splitlines()

    assert lines[:6] == [
        f"{CLUSTER}: revision 2, rolling",
        "",
        "HOST      REVISION",
        "master-0  2",
        "master-1  1",
        "master-2  -",
    ]
    assert lines[-1].endswith("revision 2 put in force by anna@laptop")


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_data_are_the_record_and_what_each_host_runs(call: Call, paths: Paths, output: str, load: Any) -> None:
    change(paths, turn=TURN)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        tree = load(call("rollout", "status", "-o", output).out)

    assert (tree["wanted"], tree["before"], tree["state"]) == (2, 1, "rolling")
    assert tree["turn"] == {"machine": "i-1", "name": "master-1", "at": 5.0, "revision": 0}
    assert [each["text"] for each in tree["events"]][-1] == "revision 2 put in force by anna@laptop"
    assert tree["hosts"] == {"master-0": 2, "master-1": 1, "master-2": 0}


def test_it_is_said_also_while_the_cloud_does_not_run(call: Call, paths: Paths) -> None:
    answer = call("rollout", "status")

    assert answer.code == ExitCode.TRY_LATER
    assert answer.out.startswith(f"{CLUSTER}: revision 2, rolling\n")


def test_the_status_of_the_cluster_has_the_rollout_and_the_revision_of_each_host(call: Call, paths: Paths) -> None:
    change(paths, turn=TURN)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        tree = json.loads(call("status", "-o", "json").out)
        screen = call("status").out

    assert tree["rollout"]["state"] == "rolling"
    assert [each["revision"] for each in tree["agents"]] == [2, 1, None]
    assert "revision 2 is being rolled out, master-1 restarts" in tree["lacks"]
    assert "revision 2: rolling" in screen.splitlines()
    assert "1, not 2" in screen


def test_a_damaged_record_hides_nothing_else(call: Call, paths: Paths) -> None:
    FileStore(paths.store).put(f"{CLUSTER}/rollout.json", b"{}")
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        tree = json.loads(call("status", "-o", "json").out)

    assert tree["rollout"] is None
    assert len(tree["hosts"]) == 3
