"""Many writers reach for one name in the same moment: exactly one wins, and nothing of the losers is seen."""

from __future__ import annotations

import threading
from collections.abc import Callable

from conformance.dns.conftest import Zone
from fakes.name_servers import ZONE, a_text, an_address, change, create
from protokube.errors import TryLater
from protokube.providers.dns import DnsProvider, Stale
from protokube.records import Record
from protokube.records.member import Publish, Settled, plan_member, read_claim

WRITERS, ROUNDS = 8, 5


def all_at_once(count: int, work: Callable[[int], None]) -> list[str]:
    """How it went for each: won, or the name of the error."""
    start, results = threading.Barrier(count), [""] * count

    def run(number: int) -> None:
        start.wait()
        while not results[number]:
            try:
                work(number)
                results[number] = "won"
            except TryLater as lost:
                if "stays locked" not in lost.message:  # a hosts file: nothing was tried
                    results[number] = type(lost).__name__

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_eight_that_swap_one_name_exactly_one_wins_each_round(zone: Zone) -> None:
    providers = [zone.connect() for _ in range(WRITERS)]
    before = [an_address("a", "10.1.0.1"), a_text("a", "start")]
    zone.provider.apply(create(*before))
    for turn in range(ROUNDS):
        wanted = [
            [an_address("a", f"10.0.{turn}.{me + 1}"), a_text("a", f"round {turn} by {me}")] for me in range(WRITERS)
        ]

        def swap(me: int, was: list[Record] = before, wanted: list[list[Record]] = wanted) -> None:
            providers[me].apply([change(old, new) for old, new in zip(was, wanted[me], strict=True)])

        results = all_at_once(WRITERS, swap)

        assert sorted(results) == ["Stale"] * (WRITERS - 1) + ["won"]
        before = wanted[results.index("won")]
        assert zone.records() == before


def test_of_eight_that_make_one_name_exactly_one_wins(zone: Zone) -> None:
    providers = [zone.connect() for _ in range(WRITERS)]
    for turn in range(3):
        records = [[an_address(f"n{turn}", f"10.0.0.{me + 1}"), a_text(f"n{turn}", str(me))] for me in range(WRITERS)]

        def make(me: int, records: list[list[Record]] = records) -> None:
            providers[me].apply(create(*records[me]))

        results = all_at_once(WRITERS, make)

        assert sorted(results) == ["Stale"] * (WRITERS - 1) + ["won"]
        assert list(zone.provider.read([f"n{turn}.{ZONE}"])) == records[results.index("won")]


def test_writers_of_different_names_do_not_disturb_each_other(zone: Zone) -> None:
    providers = [zone.connect() for _ in range(WRITERS)]

    results = all_at_once(WRITERS, lambda me: providers[me].apply(create(an_address(f"n{me}"), a_text(f"n{me}"))))

    assert results == ["won"] * WRITERS
    assert len(zone.records()) == 2 * WRITERS


def test_holders_with_rising_epochs_leave_the_name_with_the_highest(zone: Zone) -> None:
    name = f"etcd-a.internal.{ZONE}"
    seen: list[int] = []

    def settle(provider: DnsProvider, epoch: int) -> None:
        """Rounds of an agent until it has the name, or somebody with more right."""
        for _ in range(50):
            plan = plan_member(provider.read([name]), name, f"10.0.0.{epoch}", epoch, f"i-{epoch}")
            if not isinstance(plan, Publish):
                return
            try:
                provider.apply(plan.changes)
            except Stale:
                continue
        raise AssertionError("never settled")

    def watch(provider: DnsProvider, stop: threading.Event) -> None:
        while not stop.is_set():
            if claim := read_claim(provider.read([name]), name):
                seen.append(claim.epoch)

    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(zone.connect(), stop))
    watcher.start()
    results = all_at_once(WRITERS, lambda me: settle(zone.connect(), me + 1))
    stop.set()
    watcher.join()

    assert results == ["won"] * WRITERS
    assert seen == sorted(seen)
    top = plan_member(zone.provider.read([name]), name, f"10.0.0.{WRITERS}", WRITERS, f"i-{WRITERS}")
    assert top == Settled()
