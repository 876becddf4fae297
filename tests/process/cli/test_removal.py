"""A removal that was killed in the middle: nothing goes on with what is left, and the next removal completes it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from builders.command import Call
from builders.revisions import CLUSTER, a_revision
from protokube.cli.up.anew import OtherShape, beginning_anew
from protokube.cli.up.existing import existing_cluster
from protokube.errors import ExitCode
from protokube.launch import revisions
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud import cleanup
from protokube.members.founding import first_generation
from protokube.members.generation import encode
from protokube.store import layout
from protokube.store.file import FileStore

RECORD = first_generation("main", "token", {"a": "vol-1"}, "0123456789ab")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A cluster with a revision in force, a disk without content, and so much else that its removal takes a while."""
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))
    found = Paths.of(CLUSTER)
    found.create()
    Database(found.database).close()
    with found.image("vol-1").open("wb") as image:
        image.truncate(1 << 20)
    store = FileStore(found.store)
    made = revisions.create_revision(store, CLUSTER, lambda number: a_revision(number, etcd="3.6.8"))
    revisions.put_in_force(store, CLUSTER, made, running=False)
    store.create(layout.etcd_generation(CLUSTER, "main"), encode(RECORD))
    for number in range(20_000):
        (found.prepared / str(number)).touch()
    return found


def close_the_record(paths: Paths) -> None:
    store, path = FileStore(paths.store), layout.etcd_generation(CLUSTER, "main")
    store.replace(path, encode(RECORD.closed()), store.read(path).version)


def removed_by_half(paths: Paths) -> None:
    """Killed after the database is gone, and before the store is."""
    if (pid := os.fork()) == 0:
        cleanup.remove(paths)
        os._exit(0)
    while paths.database.exists():
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert (paths.store / layout.etcd_generation(CLUSTER, "main")).exists()


@beginning_anew
def up(**_: Any) -> object:
    """As `up` begins."""
    return existing_cluster(CLUSTER)


def test_a_cluster_with_data_is_not_continued_and_not_removed_by_up_but_by_down(paths: Paths, call: Call) -> None:
    close_the_record(paths)
    removed_by_half(paths)

    with pytest.raises(OtherShape, match=f"{CLUSTER} was not removed completely") as refused:
        up(dry_run=False, output="text")
    assert refused.value.hint == f"`protokube down --cluster {CLUSTER}` completes it"
    assert (paths.store / layout.etcd_generation(CLUSTER, "main")).exists()
    answer = call("start", "--cluster", CLUSTER)
    assert (answer.code, refused.value.hint in answer.err) == (ExitCode.REFUSED, True)
    assert f"incomplete: it was not removed completely: {refused.value.hint}" in call("list").out
    assert call("down", "--cluster", CLUSTER).code == ExitCode.OK
    assert not paths.root.exists()


def test_what_had_no_data_is_completely_removed_by_the_next_up(paths: Paths) -> None:
    removed_by_half(paths)

    with pytest.raises(OtherShape):
        up(dry_run=True, output="text")
    assert up(dry_run=False, output="text") is None
    assert not paths.root.exists()
