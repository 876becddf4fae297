from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakes.watch_server import WatchServer, session_with, until, watch_server
from protokube.controllers.event_correlator import BURST, News, Regarding
from protokube.controllers.events import WAITING, Events

POD = Regarding(kind="Pod", name="web", namespace="shop", uid="u-1")
NODE = Regarding(kind="Node", name="n1")
FINE = (201, dict[str, str](), b"{}")


@contextmanager
def telling(server: WatchServer, folder: Path) -> Iterator[Events]:
    stop = threading.Event()
    with session_with(server, folder) as session:
        events = Events(session, "dns-controller", "host-1")
        thread = threading.Thread(target=events.run, args=(stop,), daemon=True)
        thread.start()
        try:
            yield events
        finally:
            stop.set()
            events.wake()
            thread.join(5)
            assert not thread.is_alive()


@pytest.fixture
def server() -> Iterator[WatchServer]:
    with watch_server() as found:
        yield found


def refused(about: Regarding = POD, message: str = "no such zone") -> News:
    return News(about=about, type="Warning", reason="RecordRefused", message=message)


def test_news_becomes_an_event_on_the_object_and_the_same_again_a_count(server: WatchServer, tmp_path: Path) -> None:
    server.scripted.extend([FINE] * 3)
    with telling(server, tmp_path) as events:
        for _ in range(3):
            events.tell(refused())
        until(lambda: len(server.seen) == 3, "three requests")
    first, *more = (json.loads(each) for each in server.bodies)
    name = first["metadata"]["name"]
    assert first["metadata"]["namespace"] == "shop"
    assert first["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web",
        "namespace": "shop",
        "uid": "u-1",
    }
    assert (first["type"], first["reason"], first["message"]) == ("Warning", "RecordRefused", "no such zone")
    assert first["source"] == {"component": "dns-controller", "host": "host-1"}
    assert [each["count"] for each in more] == [2, 3]
    folder = "/api/v1/namespaces/shop/events"
    assert [(method, path) for method, path, _ in server.seen] == [
        ("POST", folder),
        ("PATCH", f"{folder}/{name}"),
        ("PATCH", f"{folder}/{name}"),
    ]


def test_an_object_without_a_namespace_has_its_events_in_default(server: WatchServer, tmp_path: Path) -> None:
    server.scripted.append(FINE)
    with telling(server, tmp_path) as events:
        events.tell(refused(NODE))
        until(lambda: server.seen, "a request")
    assert server.seen[0][1] == "/api/v1/namespaces/default/events"
    assert "namespace" not in json.loads(server.bodies[0])["involvedObject"]


def test_an_event_that_the_server_forgot_is_made_again(server: WatchServer, tmp_path: Path) -> None:
    server.scripted.extend([FINE, (404, {}, b"{}"), FINE])
    with telling(server, tmp_path) as events:
        events.tell(refused())
        events.tell(refused())
        until(lambda: len(server.seen) == 3, "three requests")
    assert [method for method, _, _ in server.seen] == ["POST", "PATCH", "POST"]


def test_events_that_cannot_be_written_disturb_nobody(server: WatchServer, tmp_path: Path) -> None:
    server.scripted.extend([(403, {}, b"{}"), (500, {}, b"nonsense"), FINE])
    with telling(server, tmp_path) as events:
        for number in range(3):
            events.tell(refused(message=str(number)))
        until(lambda: len(server.seen) == 3, "all are tried")


def test_an_object_that_is_loud_is_heard_only_so_often(server: WatchServer, tmp_path: Path) -> None:
    server.scripted.extend([FINE] * 100)
    with telling(server, tmp_path) as events:
        for number in range(50):
            events.tell(refused(message=str(number)))
        events.tell(refused(NODE))
        until(lambda: any("default" in path for _, path, _ in server.seen), "the quiet one is heard")
    assert len(server.seen) == BURST + 1


def test_who_tells_never_waits_even_if_nobody_writes(server: WatchServer, tmp_path: Path) -> None:
    with session_with(server, tmp_path) as session:
        events = Events(session, "nobody")
        for number in range(WAITING + 10):
            events.tell(refused(message=str(number)))
        events.wake()
    assert not server.seen
