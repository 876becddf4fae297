"""A process that is killed while it writes files: what is there is wholly old or wholly new."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.store.crew import Worker
from fakes.watch_server import until
from protokube.store import Store
from protokube.store.open import open_store

SIZE = 300_000
DELAYS = [0.02, 0.05, 0.09, 0.14]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def start_and_kill(root: Path, order: str, path: str, delay: float, begun: Callable[[], object]) -> None:
    """Killed some time after it has begun to write."""
    worker = Worker(str(root), {})
    assert worker.hear() == "ready"
    worker.tell(order, path, str(SIZE))
    until(begun, "it has begun")
    time.sleep(delay)
    worker.process.kill()
    assert worker.process.wait() == -9
    for pipe in (worker.process.stdin, worker.process.stdout):
        assert pipe is not None
        pipe.close()


def replaced(root: Path) -> Callable[[], bool]:
    """Whether another file is there than now."""
    file = root / "dev" / "config"
    before = file.stat().st_ino
    return lambda: file.stat().st_ino != before


def drafts(root: Path) -> list[Path]:
    return list(root.rglob(".protokube-draft-*"))


@pytest.mark.parametrize("delay", DELAYS)
def test_a_replace_that_is_killed_leaves_the_old_or_the_new_content(root: Path, delay: float) -> None:
    store = open_store(str(root))
    store.create("dev/config", b"a" * SIZE)

    start_and_kill(root, "replace_forever", "dev/config", delay, replaced(root))

    found = store.read("dev/config")
    assert found.data in (b"a" * SIZE, b"b" * SIZE)
    assert store.list_paths() == ("dev/config",)
    store.replace("dev/config", b"after", found.version)
    assert store.read("dev/config").data == b"after"


@pytest.mark.parametrize("delay", DELAYS)
def test_a_create_that_is_killed_leaves_a_whole_file_or_none(root: Path, delay: float) -> None:
    store = open_store(str(root))

    start_and_kill(root, "create_forever", "dev/many", delay, store.list_paths)

    paths = store.list_paths()
    assert all(store.read(path).data == b"c" * SIZE for path in paths)
    assert len(paths) == len(set(paths))
    store.create(f"dev/many/{len(paths)}", b"next")


def test_the_lock_of_a_killed_process_is_free_at_once(root: Path) -> None:
    store = open_store(str(root))
    store.create("dev/config", b"a" * SIZE)

    start_and_kill(root, "replace_forever", "dev/config", 0.05, replaced(root))

    begun = time.monotonic()
    assert store.put("dev/config", b"after")
    assert time.monotonic() - begun < 8, "less than a lock is waited for"


def leave_a_draft(store: Store, root: Path) -> Path:
    store.create("dev/config", b"x")
    draft = root / "dev" / ".protokube-draft-0123456789abcdef"
    draft.write_bytes(b"half of someth")
    return draft


def test_a_draft_left_behind_is_not_listed_and_cannot_be_reached(root: Path) -> None:
    store = open_store(str(root))
    leave_a_draft(store, root)

    assert store.list_paths() == ("dev/config",)
    assert store.list_paths("dev") == ("dev/config",)


def test_a_draft_left_behind_is_not_swept_because_it_could_be_somebody_elses(root: Path) -> None:
    store = open_store(str(root))
    draft = leave_a_draft(store, root)

    store.put("dev/config", b"y")
    store.create("dev/other", b"z")

    assert drafts(root) == [draft]


def test_finished_writes_leave_no_drafts(root: Path) -> None:
    store = open_store(str(root))
    version = store.create("dev/config", b"1")
    store.replace("dev/config", b"2", version)
    store.put("dev/config", b"3")

    assert drafts(root) == []
