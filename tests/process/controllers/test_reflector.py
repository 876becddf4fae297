"""The reflector, over a real wire, against a server that does everything wrong."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.ports import kept_port
from fakes.watch_server import PATH, WatchServer, session_with, until, watch_server
from protokube.controllers.backoff import Backoff
from protokube.controllers.decoding import Kind, reader
from protokube.controllers.reflector import Reflector, Snapshot
from protokube.kube.session import Session


class Thing(msgspec.Struct):
    size: int = 0
    note: str = ""


def keep(thing: Thing) -> tuple[int, str] | None:
    return (thing.size, thing.note) if thing.size else None


THINGS = Kind(name="things", path=PATH, read=reader(Thing, keep))
Kept = tuple[int, str]


@dataclass
class Running:
    server: WatchServer
    session: Session
    reflector: Reflector[Kept]
    calls: list[Snapshot[Kept]]

    def sizes(self) -> dict[str, int]:
        return {key.removeprefix("space/"): size for key, (size, _) in self.reflector.snapshot().items.items()}

    def truth(self) -> dict[str, int]:
        return {name: tree["size"] for name, tree in self.server.objects.items() if tree["size"]}

    def settle(self) -> None:
        until(self.settled, "it knows what there is, and has told so")

    def settled(self) -> bool:
        seen = self.reflector.snapshot()
        return seen.in_touch and self.sizes() == self.truth() and self.calls[-1:] == [seen]


@contextmanager
def running(
    server: WatchServer, folder: Path, *, silence: float = 30.0, relist_every: float = 0.0, page_size: int = 500
) -> Iterator[Running]:
    calls: list[Snapshot[Kept]] = []
    with session_with(server, folder) as session:
        found: Reflector[Kept] = Reflector(
            session,
            THINGS,
            lambda: calls.append(found.snapshot()),
            silence=silence,
            page_size=page_size,
            relist_every=relist_every,
            backoff=Backoff(first=0.001, most=0.02, lasting=0.5),
        )
        stop = threading.Event()
        thread = threading.Thread(target=found.run, args=(stop,), daemon=True)
        thread.start()
        try:
            yield Running(server, session, found, calls)
        finally:
            stop.set()
            session.close()
            thread.join(5)
            assert not thread.is_alive(), "it stops when the session is closed"


@pytest.fixture
def server() -> Iterator[WatchServer]:
    with watch_server() as found:
        yield found


def test_a_list_comes_in_pages_and_what_nobody_wants_is_counted_but_not_kept(
    server: WatchServer, tmp_path: Path
) -> None:
    for number in range(25):
        server.put(f"thing-{number}", size=number % 2)
    with running(server, tmp_path, page_size=10) as it:
        it.settle()
        seen = it.reflector.snapshot()
        assert (len(seen.items), seen.total, seen.lists, seen.trouble) == (12, 25, 1, "")
        assert [query.get("limit") for _, _, query in server.seen[:3]] == ["10", "10", "10"]
        assert "resourceVersion" not in server.seen[0][2]
        with pytest.raises(TypeError):
            seen.items["space/new"] = (1, "")  # type: ignore[index]


def test_a_snapshot_does_not_change_when_the_world_does(server: WatchServer, tmp_path: Path) -> None:
    server.put("a", size=1)
    with running(server, tmp_path) as it:
        it.settle()
        before = it.reflector.snapshot()
        assert it.reflector.snapshot().items is before.items
        server.put("a", size=2)
        it.settle()
        assert before.items == {"space/a": (1, "")}


def test_each_change_is_told_and_what_concerns_nobody_is_not(server: WatchServer, tmp_path: Path) -> None:
    server.put("a", size=1)
    with running(server, tmp_path) as it:
        it.settle()
        calls_before = len(it.calls)
        server.put("boring", size=0)
        server.put("boring", size=0)
        server.put("a", size=1)
        server.bookmark()
        server.remove("boring")
        server.put("a", size=2)
        it.settle()
        assert len(it.calls) == calls_before + 1
        assert server.lists() == 1


def test_an_object_that_turns_uninteresting_is_forgotten(server: WatchServer, tmp_path: Path) -> None:
    server.put("a", size=1)
    with running(server, tmp_path) as it:
        it.settle()
        server.put("a", size=0)
        until(lambda: it.sizes() == {}, "it is forgotten")
        server.put("a", size=3)
        until(lambda: it.sizes() == {"a": 3}, "it is back")


def test_a_watch_that_ends_goes_on_where_it_was_without_a_list(server: WatchServer, tmp_path: Path) -> None:
    with running(server, tmp_path) as it:
        it.settle()
        server.bookmark()
        server.bookmark()
        at = server.version
        server.end_watches()
        until(lambda: len(server.watches()) >= 2, "it watches again")
        server.put("a", size=1)
        it.settle()
        second = server.watches()[1]
        assert second["allowWatchBookmarks"] == "true"
        assert 240 <= int(second["timeoutSeconds"]) <= 300
        assert int(second["resourceVersion"]) == at
        assert server.lists() == 1


@pytest.mark.parametrize("fault", ["500", "410", "cut", "half", "garbage"])
def test_a_page_that_fails_in_the_middle_changes_nothing_until_a_list_is_complete(
    server: WatchServer, tmp_path: Path, fault: str
) -> None:
    for number in range(6):
        server.put(f"thing-{number}", size=1)
    with running(server, tmp_path, page_size=2) as it:
        it.settle()
        for number in range(6):
            server.put(f"thing-{number}", size=0)
        until(lambda: it.sizes() == {}, "all are gone")
        for number in range(6):
            server.put(f"thing-{number}", size=2)
        it.settle()
        server.faults.extend(["", fault, fault])  # a `cut` request is retried at once
        it.reflector.relist()
        until(lambda: not server.faults, "the fault has come")
        until(lambda: it.reflector.snapshot().lists == 2, "another list")
        it.settle()
        assert all(len(call.items) == 6 for call in it.calls if call.lists == 2)


def test_a_token_that_grows_too_old_while_paging_starts_the_list_anew(server: WatchServer, tmp_path: Path) -> None:
    for number in range(4):
        server.put(f"thing-{number}", size=1)
    server.scripted.append(
        (200, {}, json.dumps({"metadata": {"resourceVersion": "50", "continue": "50:2"}, "items": []}).encode())
    )
    with running(server, tmp_path, page_size=2) as it:
        it.settle()
        assert it.reflector.snapshot().lists == 1
        assert server.lists() == 2


def test_a_storm_of_410_is_answered_by_ever_rarer_lists(server: WatchServer, tmp_path: Path) -> None:
    stop = threading.Event()
    with session_with(server, tmp_path) as session:
        server.faults.extend(["410"] * 100000)
        found = Reflector(session, THINGS, backoff=Backoff(first=0.02, most=30.0))
        thread = threading.Thread(target=found.run, args=(stop,), daemon=True)
        thread.start()
        until(lambda: len(server.seen) >= 6, "it tries again and again")
        began, so_far = time.monotonic(), len(server.seen)
        while time.monotonic() < began + 0.3:
            time.sleep(0.01)
        assert len(server.seen) - so_far < 20, "the sixth wait is 0.3 s on average, not nothing"
        assert "told to say 410" in found.snapshot().trouble
        assert not found.snapshot().in_touch
        stop.set()
        thread.join(5)
        assert not thread.is_alive()


def test_what_a_server_forgot_before_it_told_it_is_found_by_a_list(server: WatchServer, tmp_path: Path) -> None:
    with running(server, tmp_path) as it:
        server.put("thing", size=1)
        it.settle()
        with server.lock:  # no watch is served in between
            server.put("missed", size=2)
            server.forget_history()
        server.put("last", size=3)
        it.settle()
        assert it.sizes() == {"thing": 1, "missed": 2, "last": 3}


def test_a_watch_whose_version_is_gone_ends_in_a_list(server: WatchServer, tmp_path: Path) -> None:
    server.put("a", size=1)
    server.put("b", size=1)
    with running(server, tmp_path) as it:
        it.settle()
        with server.lock:
            del server.objects["a"]  # in the compacted part of the history
            server.forget_history()
            server.end_watches()
        it.settle()
        assert it.sizes() == {"b": 1}
        assert server.lists() == 2


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b'{"type":"ERROR","object":{"code":410,"message":"too old resource version"}}\n',
        b'{"type":"SURPRISE","object":{"metadata":{"resourceVersion":"999"}}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"space"},"size":9}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"999"},"size":"nine"}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"7"},"size":9}}\n',
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff","resourceVersion":"999"},"size":9}}\n',
    ],
)
def test_whatever_is_odd_ends_in_a_complete_list(server: WatchServer, tmp_path: Path, line: bytes) -> None:
    server.put("a", size=1)
    with running(server, tmp_path) as it:
        it.settle()
        server.say(line)
        until(lambda: it.reflector.snapshot().lists == 2, "a second list")
        it.settle()
        assert any(call.trouble for call in it.calls[2:])


def test_an_event_that_comes_twice_changes_nothing(server: WatchServer, tmp_path: Path) -> None:
    with running(server, tmp_path) as it:
        it.settle()
        server.put("a", size=1)
        it.settle()
        calls_before = len(it.calls)
        server.say(server.history[-1][1])
        server.put("b", size=1)
        it.settle()
        assert len(it.calls) == calls_before + 1
        assert server.lists() == 1


def test_a_character_may_be_cut_anywhere(server: WatchServer, tmp_path: Path) -> None:
    with running(server, tmp_path) as it:
        it.settle()
        line = json.dumps(
            {
                "type": "ADDED",
                "object": {
                    "metadata": {"name": "a", "namespace": "space", "resourceVersion": "999"},
                    "size": 1,
                    "note": "żółw 🐢",
                },
            },
            ensure_ascii=False,
        ).encode()
        server.say(*(bytes([each]) for each in line + b"\n"))
        until(lambda: it.reflector.snapshot().items == {"space/a": (1, "żółw 🐢")}, "it is read as it was meant")
        assert server.lists() == 1


def test_a_silent_watch_is_opened_again_and_after_two_silences_everything_is_listed(
    server: WatchServer, tmp_path: Path
) -> None:
    server.faults.extend(["", "silent", "silent", "silent"])
    with running(server, tmp_path, silence=0.2) as it:
        until(lambda: len(server.watches()) >= 2, "it watches again")
        first, second = server.watches()[:2]
        assert second["resourceVersion"] == first["resourceVersion"]
        until(lambda: server.lists() >= 2, "it lists")
        assert len(server.watches()) >= 2
        server.put("a", size=1)
        until(lambda: it.sizes() == {"a": 1}, "it hears again")
    assert any("said nothing for 0.2 s" in call.trouble for call in it.calls)


def test_a_server_that_answers_a_watch_with_errors_is_asked_for_a_list(server: WatchServer, tmp_path: Path) -> None:
    server.faults.extend(["", "500", "500"])
    with running(server, tmp_path) as it:
        it.settle()
        assert [("watch" in query) for _, _, query in server.seen] == [False, True, True, False, True]


def test_a_connection_cut_within_a_line_goes_on_before_that_line(server: WatchServer, tmp_path: Path) -> None:
    server.faults.extend(["", "half"])
    with running(server, tmp_path) as it:
        until(lambda: server.watching, "it watches")
        server.put("a", size=1)
        it.settle()
        assert server.lists() == 1
        assert server.watches()[1]["resourceVersion"] == server.watches()[0]["resourceVersion"]


def test_a_server_that_comes_back_is_known_again_with_all_that_happened(tmp_path: Path) -> None:
    with kept_port() as port, watch_server(port=port) as first:
        first.put("a", size=1)
        with running(first, tmp_path) as it:
            it.settle()
            first.down = True
            first.end_watches()
            first.shutdown()
            first.server_close()
            until(lambda: not it.reflector.snapshot().in_touch, "it knows that it is out of touch")
            assert it.sizes() == {"a": 1}, "nothing is forgotten because nobody answers"
            with watch_server(port=port, version=500) as second:
                second.put("b", size=2)
                it.server = second
                it.settle()
                assert it.reflector.snapshot().lists == 2


def test_an_empty_list_after_a_full_one_is_believed_once_it_is_complete(server: WatchServer, tmp_path: Path) -> None:
    server.put("a", size=1)
    with running(server, tmp_path) as it:
        it.settle()
        with server.lock:
            server.objects.clear()
            server.forget_history()
            server.end_watches()
        until(lambda: it.reflector.snapshot().lists == 2, "a second list")
        seen = it.reflector.snapshot()
        assert (seen.items, seen.total) == ({}, 0)


def test_who_asks_gets_a_second_list_that_was_begun_after_the_question(server: WatchServer, tmp_path: Path) -> None:
    with running(server, tmp_path) as it:
        it.settle()
        asked = time.monotonic()
        it.reflector.relist()
        until(lambda: it.reflector.snapshot().lists == 2, "a second list")
        listed = it.reflector.snapshot().listed_at
        assert listed is not None
        assert listed >= asked
        it.settle()
        assert all(call.in_touch for call in it.calls[1:]), "that is no reason to worry anybody"


def test_who_asks_too_often_waits_and_hears_of_changes_meanwhile(server: WatchServer, tmp_path: Path) -> None:
    with running(server, tmp_path, relist_every=60.0) as it:
        it.settle()
        for _ in range(20):
            it.reflector.relist()
        until(lambda: len(server.watches()) >= 2, "it watches again, for a short time")
        assert int(server.watches()[-1]["timeoutSeconds"]) <= 61
        server.put("a", size=1)
        it.settle()
        assert it.reflector.snapshot().lists == 1
        assert server.lists() == 1


def test_who_asked_too_early_gets_the_list_when_it_is_time(server: WatchServer, tmp_path: Path) -> None:
    with running(server, tmp_path, relist_every=1.0) as it:
        it.settle()
        first = it.reflector.snapshot().listed_at
        it.reflector.relist()
        until(lambda: it.reflector.snapshot().lists == 2, "the list that was asked for")
        second = it.reflector.snapshot().listed_at
        assert first is not None
        assert second is not None
        assert second >= first + 1.0
        it.settle()
        assert server.lists() == 2


def test_a_server_that_refuses_is_quoted(server: WatchServer, tmp_path: Path) -> None:
    server.faults.extend(["403"] * 10000)
    with running(server, tmp_path) as it:
        until(lambda: "told to say 403" in it.reflector.snapshot().trouble, "it says why")
        assert it.reflector.snapshot().listed_at is None


def test_a_bug_in_what_is_kept_does_not_end_the_thread(server: WatchServer, tmp_path: Path) -> None:
    broken = [True]

    def fails(_: Thing) -> int | None:
        if broken:
            raise ZeroDivisionError
        return 1

    server.put("a", size=1)
    stop = threading.Event()
    with session_with(server, tmp_path) as session:
        kind = Kind(name="things", path=PATH, read=reader(Thing, fails))
        found = Reflector(session, kind, backoff=Backoff(first=0.001, most=0.01))
        thread = threading.Thread(target=found.run, args=(stop,), daemon=True)
        thread.start()
        until(lambda: "please report it" in found.snapshot().trouble, "it says so")
        broken.clear()
        until(lambda: found.snapshot().in_touch, "it goes on")
        assert found.snapshot().items == {"space/a": 1}
        stop.set()
        session.close()
        thread.join(5)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd"), st.integers(0, 3)),
        st.tuples(st.just("remove"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.sampled_from(["bookmark", "forget", "end", "relist"]), st.just(""), st.just(0)),
        st.tuples(
            st.just("fault"), st.sampled_from(["500", "410", "cut", "half", "garbage", "error", "end", ""]), st.just(0)
        ),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happened_once_it_is_quiet_it_knows_what_there_is(
    tmp_path: Path, steps: list[tuple[str, str, int]]
) -> None:
    with watch_server() as server, running(server, tmp_path, page_size=2) as it:
        for step, word, number in steps:
            match step:
                case "put":
                    server.put(word, size=number)
                case "remove":
                    server.remove(word)
                case "bookmark":
                    server.bookmark()
                case "forget":
                    server.forget_history()
                case "end":
                    server.end_watches()
                case "relist":
                    it.reflector.relist()
                case "fault":
                    server.faults.append(word)
        server.faults.clear()
        server.put("last", size=1)  # not delivered before the last fault has occurred
        server.end_watches()
        it.settle()
        assert it.reflector.snapshot().trouble == ""
