"""Which cluster a command is about, how that is completed in a shell, and who may look."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from builders.command import Call
from builders.view import ShortFolder, a_view, write_state
from protokube.cli.shared.cluster_view import find_cluster, follow
from protokube.cli.shared.offered import offer_clusters
from protokube.errors import ExitCode, InvalidRequest, Refused
from protokube.view.cluster import ClusterView

COMMANDS = (
    ("status",),
    ("explain", "member", "a"),
    ("etcd", "members"),
    ("etcd", "adopt", "vol-1"),
    ("drill", "kill-master"),
)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


def completed(incomplete: str) -> list[str]:
    return offer_clusters(click.Context(click.Command("status")), click.Option(["--cluster"]), incomplete)


def test_the_only_cluster_needs_no_name(state: Path) -> None:
    write_state(state, a_view(), "one")

    assert find_cluster(None).cluster == "one"
    assert find_cluster("one").root == (state / "one").resolve()


def test_of_two_the_one_that_is_named_is_meant(state: Path) -> None:
    for name in ("one", "two"):
        write_state(state, a_view(), name)

    assert find_cluster("two").cluster == "two"
    with pytest.raises(InvalidRequest, match="several local clusters: one, two"):
        find_cluster(None)


def test_a_folder_that_is_not_a_local_cloud_is_no_cluster(state: Path) -> None:
    (state / "photos").mkdir()
    write_state(state, a_view(), "one")

    assert find_cluster(None).cluster == "one"
    assert completed("") == ["one"]
    with pytest.raises(InvalidRequest):
        find_cluster("photos")


def test_a_shell_completes_the_names_there_are(state: Path) -> None:
    for name in ("dev.local", "dev.test", "prod"):
        write_state(state, a_view(), name)

    assert completed("dev") == ["dev.local", "dev.test"]
    assert completed("x") == []
    assert completed("") == ["dev.local", "dev.test", "prod"]


def test_a_shell_completes_nothing_where_nothing_is(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOKUBE_STATE", str(state / "absent"))

    assert completed("") == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_the_same_where_there_is_no_cluster(
    call: Call, state: Path, command: tuple[str, ...]
) -> None:
    answer = call(*command)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert answer.err.startswith("error: there is no local cluster on this machine\n")
    assert "protokube up" in answer.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_name_of_a_cluster(call: Call, state: Path, command: tuple[str, ...]) -> None:
    write_state(state, a_view(), "one")
    answer = call(*command, "--cluster", "none")

    assert answer.code == ExitCode.INVALID
    assert "there is no local cluster 'none'" in answer.err
    assert "one" in answer.err


def test_a_cluster_of_root_is_not_for_everybody_to_look_at(state: Path) -> None:
    paths = write_state(state, a_view(), "one")
    paths.admin_socket.touch(mode=0o600)
    state.chmod(0o755)
    assert find_cluster(None).cluster == "one"
    os.seteuid(65534)
    try:
        with pytest.raises(Refused, match="no permission to read one") as caught:
            find_cluster(None)
    finally:
        os.seteuid(0)

    assert caught.value.hint == "sudo"


def test_looking_stops_when_nobody_asks_for_more() -> None:
    looked: list[int] = []

    def look() -> ClusterView:
        looked.append(1)
        return a_view()

    for number, _ in enumerate(follow(look, 60, sleep=lambda _: None)):
        if number == 2:
            break

    assert len(looked) == 3


@pytest.mark.parametrize("arguments", [("status",), ("explain",), ("etcd",), ("etcd", "adopt"), ("drill",)])
def test_every_command_has_help_that_fits_a_terminal(call: Call, arguments: tuple[str, ...]) -> None:
    answer = call(*arguments, "--help")

    assert answer.code == ExitCode.OK
    assert max(len(line) for line in answer.out.splitlines()) <= 120
