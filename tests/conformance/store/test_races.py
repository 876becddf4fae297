"""Several writers reach for one path in the same moment: one wins, and nobody's work is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

from conformance.store.conftest import Place
from conformance.store.crew import Crew
from protokube.store import AlreadyThere, Changed, Store
from protokube.store.open import open_store

ROUNDS = 5


def all_at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """Run the work in as many threads, let go together, and collect what each one returns."""
    start = threading.Barrier(count)
    results: list[object] = [None] * count

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = work(number)
        except (AlreadyThere, Changed) as lost:
            results[number] = type(lost)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_many_threads_that_create_one_path_exactly_one_wins(place: Place) -> None:
    stores = [open_store(place.url) for _ in range(6)]
    for number in range(ROUNDS):
        path = f"dev/round-{number}"
        results = all_at_once(6, lambda me, path=path: stores[me].create(path, b"%d" % me))  # type: ignore[misc]

        winners = [me for me, result in enumerate(results) if result is not AlreadyThere]
        assert len(winners) == 1
        assert stores[0].read(path).data == b"%d" % winners[0]
    for store in stores:
        store.close()


def test_of_many_threads_that_replace_one_version_exactly_one_wins(store: Store) -> None:
    seen = store.create("dev/config", b"old")

    results = all_at_once(8, lambda me: store.replace("dev/config", b"%d" % me, seen))

    winners = [me for me, result in enumerate(results) if result is not Changed]
    assert len(winners) == 1
    assert store.read("dev/config").data == b"%d" % winners[0]


def test_no_increment_of_many_threads_is_lost(store: Store) -> None:
    store.create("dev/counter", b"0")

    def count(_: int) -> None:
        for _ in range(5):
            while True:
                seen = store.read("dev/counter")
                try:
                    store.replace("dev/counter", b"%d" % (int(seen.data) + 1), seen.version)
                    break
                except Changed:
                    continue

    all_at_once(4, count)

    assert store.read("dev/counter").data == b"20"


def test_of_many_processes_that_create_one_path_exactly_one_wins(crew: Crew) -> None:
    for number in range(10):
        results = crew.all_at_once("create", f"dev/race-{number}", "mine")

        assert sorted(results) == ["lost", "lost", "lost", "won"]


def test_no_increment_of_many_processes_is_lost(crew: Crew) -> None:
    crew.workers[0].tell("create", "dev/process-counter", "0")
    assert crew.workers[0].hear() == "won"

    crew.all_at_once("count", "dev/process-counter", "10")

    assert set(crew.all_at_once("read", "dev/process-counter")) == {"40"}


def test_every_process_sees_at_once_what_another_wrote(crew: Crew) -> None:
    for number, writer in enumerate(crew.workers):
        assert crew.all_at_once("list_paths", f"fresh-{number}") == [""] * len(crew.workers)

        writer.tell("create", f"fresh-{number}/config", "x")
        assert writer.hear() == "won"

        assert crew.all_at_once("list_paths", f"fresh-{number}") == [f"fresh-{number}/config"] * len(crew.workers)
        assert crew.all_at_once("read", f"fresh-{number}/config") == ["x"] * len(crew.workers)
