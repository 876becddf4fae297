"""`protokube explain`: why a volume, a member or a name waits, or where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Call
from builders.view import (
    CLUSTER,
    FakeCloud,
    ShortFolder,
    a_view,
    cloud_rows,
    write_state,
)
from protokube.errors import ExitCode
from protokube.view.cluster import ClusterView

VIEW = a_view()


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


# The command.


@pytest.fixture
def cluster(state: Path) -> Iterator[ClusterView]:
    paths = write_state(state, VIEW)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        yield VIEW


def test_the_command_tells_it(call: Call, cluster: ClusterView) -> None:
    answer = call("explain", "volume", "vol-bbbb")

    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert answer.out.startswith("vol-bbbb is the home of etcd-b\n")


def test_the_command_tells_it_as_data(call: Call, cluster: ClusterView) -> None:
    tree = json.loads(call("explain", "record", "etcd-b", "-o", "json").out)

    assert (tree["kind"], tree["name"]) == ("record", f"etcd-b.internal.{CLUSTER}")
    assert tree["facts"]["value"] == "10.77.0.12"


def test_the_command_says_what_is_not_there(call: Call, cluster: ClusterView) -> None:
    answer = call("explain", "member", "etcd-z")

    assert answer.code == ExitCode.INVALID
    assert "there is no member 'etcd-z'" in answer.err
