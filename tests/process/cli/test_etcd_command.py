"""`protokube etcd`: the members as etcd lists them, and what is said of a volume that is to be adopted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Call
from builders.view import FakeCloud, ShortFolder, a_view, cloud_rows, write_state
from protokube.errors import ExitCode

VIEW = a_view()


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


def test_the_command_says_by_its_code_that_nobody_answered(call: Call, state: Path) -> None:
    paths = write_state(state, VIEW)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        text, data = call("etcd", "members"), call("etcd", "members", "-o", "json")

    assert (text.code, text.out) == (ExitCode.TRY_LATER, "main: no member answers behind a quorum\n")
    assert (data.code, json.loads(data.out)) == (ExitCode.TRY_LATER, {"main": []})


def test_a_cluster_of_which_nothing_is_known_is_said(call: Call, state: Path) -> None:
    write_state(state, a_view(generations={}, agents=()))
    answer = call("etcd", "members")

    assert (answer.code, answer.out) == (
        ExitCode.TRY_LATER,
        f"nothing is known of the members of {VIEW.cluster} yet: protokube status\n",
    )


def test_the_command_adopts_nothing_that_nobody_has_mounted(call: Call, state: Path) -> None:
    paths = write_state(state, VIEW)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        answer = call("etcd", "adopt", "vol-aaaa", "--yes")

    assert answer.code == ExitCode.TRY_LATER
    assert "no host has vol-aaaa mounted" in answer.err
