"""What a shell offers for names of clusters, hosts, members, volumes and records: at once, and silent when in doubt."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from builders.command import environment, process
from builders.local_state import LocalState
from protokube.cli.main import cli
from protokube.local.base.db import Database

HOSTS = ("master-a-1x2y", "master-b-3z4w")
LONGEST = 2.0
"""Seconds for a whole process on a busy machine; alone it takes 0.2."""


def write_cluster(parent: Path, name: str) -> None:
    made = LocalState(parent, name)
    for host in HOSTS:
        made.host(host)
        made.log(host, "protokube.service.log")
        made.log(host, "pods/kube-system_kube-apiserver/kube-apiserver.log")
    made.kill(made.host("master-a-dead"))
    for member in "ab":
        made.volume(member, None)
    made.record("etcd-a.internal.one", "10.77.0.11")
    made.exposed(8080, "web")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    write_cluster(tmp_path, "one")
    return tmp_path


def offered(state: Path, *words: str) -> list[str]:
    env = {"_PROTOKUBE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    began = time.monotonic()
    answer = process(env={**env, "PROTOKUBE_STATE": str(state)})
    assert (answer.code, answer.err) == (0, "")
    assert time.monotonic() - began < LONGEST
    return [line.partition(",")[2] for line in answer.out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("status", "--cluster", ""), ["one"]),
        (("up", "--cluster", ""), ["one"]),
        (("down", "--cluster", "o"), ["one"]),
        (("drill", "kill-master", "--member", ""), ["main/a", "main/b"]),
        (("drill", "kill"), ["kill-master"]),
        (("etcd", "adopt", "vol-b"), ["vol-b"]),
        (("explain", "volume", ""), ["vol-a", "vol-b"]),
        (("explain", "member", "main/b"), ["main/b"]),
        (("explain", "record", "etcd"), ["etcd-a.internal.one"]),
        (("shell", "master-a"), ["master-a-1x2y"]),
        (("shell", "main/"), ["main/a", "main/b"]),
        (("logs", "a"), ["agent"]),
        (("logs", "agent", "kube"), ["kube-apiserver"]),
        (("logs", "master-a-1x2y/"), ["master-a-1x2y/agent", "master-a-1x2y/kube-apiserver"]),
        (("logs", "../"), []),
        (("expose", "rem"), ["remove"]),
        (("expose", "remove", ""), ["8080", "default/web"]),
        (("expose", "add", "we"), []),
        (("explain", "member", "--store", "file:///nowhere", ""), []),
    ],
)
def test_names_of_the_only_cluster_are_offered(state: Path, words: tuple[str, ...], found: list[str]) -> None:
    assert offered(state, "protokube", *words) == found


def test_with_several_clusters_names_are_offered_once_one_is_chosen(state: Path) -> None:
    write_cluster(state, "two")

    assert offered(state, "protokube", "status", "--cluster", "") == ["one", "two"]
    assert offered(state, "protokube", "explain", "volume", "") == []
    assert offered(state, "protokube", "explain", "--cluster", "two", "volume", "vol-a") == ["vol-a"]
    assert offered(state, "protokube", "explain", "--cluster", "three", "volume", "") == []


def test_a_bash_that_sourced_the_script_completes_names_of_the_cluster(state: Path) -> None:
    script = """
        source <(protokube completion bash)
        for words in "shell master-b" "logs -f kube-a" "drill kill-master --member main/b" "expose rem"; do
            COMP_WORDS=(protokube $words) COMP_CWORD=$(set -- $words; echo $#)
            COMPREPLY=()
            _protokube_completion protokube
            echo "${COMPREPLY[@]}"
        done
        compgen -W "$(complete -p protokube)" -- _protokube
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = environment(PATH=path, PROTOKUBE_STATE=str(state))
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, timeout=60)

    assert done.stderr == ""
    assert done.stdout.split() == ["master-b-3z4w", "kube-apiserver", "main/b", "remove", "_protokube_completion"]


def test_every_option_and_argument_that_takes_a_name_of_the_cluster_is_completed() -> None:
    names = {"cluster", "host", "member", "volume", "what"}

    def without(command: click.Command, path: str) -> Iterator[str]:
        for each in command.params:
            if each.name in names and each._custom_shell_complete is None:
                yield f"{path} {each.name}"
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), name)
                assert inner is not None
                yield from without(inner, f"{path} {name}")

    assert list(without(cli, "protokube")) == []


@pytest.mark.parametrize("damage", ["missing", "garbage", "folder", "locked"])
def test_a_database_that_cannot_be_read_offers_nothing_and_says_nothing(state: Path, damage: str) -> None:
    database = state / "one" / "cloud.sqlite"
    holder = None
    if damage == "locked":
        holder = Database(database)
        holder._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder._connection.execute("BEGIN EXCLUSIVE")
    else:
        database.unlink()
    if damage == "garbage":
        database.write_bytes(os.urandom(8192))
    if damage == "folder":
        database.mkdir()
    try:
        assert offered(state, "protokube", "explain", "volume", "") in ([], ["vol-a", "vol-b"])
    finally:
        if holder:
            holder._connection.execute("ROLLBACK")
            holder.close()
    assert damage != "missing" or not database.exists()
