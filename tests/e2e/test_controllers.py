"""What controllers stand on, against a real API server: lists and watches, elections, Events."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from e2e.real_api import RealApi, real_api, until
from protokube.controllers.backoff import Backoff
from protokube.controllers.decoding import Kind, reader
from protokube.controllers.election import Election
from protokube.controllers.event_correlator import News, Regarding
from protokube.controllers.events import Events
from protokube.controllers.reflector import Reflector
from protokube.errors import TryLater
from protokube.kube.client import ApiError
from protokube.kube.session import Conflict, Session
from protokube.manifests import kubeconfig

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SHORT = 3.0


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    with real_api(tmp_path_factory.mktemp("api")) as found:
        yield found


@pytest.fixture(scope="module")
def login(real: RealApi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("login") / "kubeconfig"
    keys = {"ca": "ca.crt", "certificate": "protokube.crt", "key": "protokube.key"}
    paths = {name: str(real.keys / key) for name, key in keys.items()}
    file.write_text(kubeconfig.by_files("laptop", real.server, "protokube", **paths))
    return file


@pytest.fixture
def session(login: Path) -> Iterator[Session]:
    found = Session.open(login)
    yield found
    found.close()


class Map(msgspec.Struct):
    data: dict[str, str] | None = None


def colour(found: Map) -> str | None:
    return (found.data or {}).get("colour")


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@contextmanager
def followed(session: Session, **settings: Any) -> Iterator[Reflector[str]]:
    kind = Kind(name="configmaps", path=MAPS, read=reader(Map, colour))
    found = Reflector(session, kind, backoff=Backoff(most=0.2), **settings)
    stop = threading.Event()
    thread = threading.Thread(target=found.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        session.close()
        thread.join(10)
        assert not thread.is_alive()


def test_objects_are_listed_in_pages_and_followed(real: RealApi, session: Session) -> None:
    for number in range(7):
        real.api.create(MAPS, a_map(f"list-{number}", **({"colour": "red"} if number % 2 else {})))
    with followed(session, page_size=3) as maps:
        until(lambda: maps.snapshot().in_touch, "it is in touch")
        assert sorted(maps.snapshot().items) == [f"default/list-{number}" for number in (1, 3, 5)]
        assert maps.snapshot().total >= 7
        real.api.merge(f"{MAPS}/list-0", {"data": {"colour": "blue"}})
        real.api.merge(f"{MAPS}/list-1", {"data": {"colour": None}})
        real.api.delete(f"{MAPS}/list-3")
        wanted = {"default/list-0": "blue", "default/list-5": "red"}
        until(lambda: maps.snapshot().items == wanted, "all changes are known")
        maps.relist()
        until(lambda: maps.snapshot().lists == 1, "no second list so soon")
        assert maps.snapshot().items == wanted


def test_a_connection_that_breaks_loses_nothing(real: RealApi, session: Session) -> None:
    with followed(session, silence=0.3) as maps:
        until(lambda: maps.snapshot().in_touch, "it is in touch")
        for number in range(12):
            real.api.create(MAPS, a_map(f"break-{number}", colour="green"))
            until(lambda number=number: f"default/break-{number}" in maps.snapshot().items, "it is known")  # type: ignore[misc]
        until(lambda: maps.snapshot().lists >= 3, "a silent watch ends in lists")
        assert sum(key.startswith("default/break-") for key in maps.snapshot().items) == 12


def test_a_version_that_makes_no_sense_is_refused_in_words(session: Session) -> None:
    query = {"watch": "true", "resourceVersion": "nonsense", "timeoutSeconds": "1"}
    with pytest.raises(TryLater, match="Invalid value"), session.watch(MAPS, query):
        pass


def test_a_write_over_an_old_version_is_a_conflict(real: RealApi, session: Session) -> None:
    made = real.api.create(MAPS, a_map("swap"))
    session.replace(f"{MAPS}/swap", json.dumps(made | {"data": {"a": "1"}}).encode())
    with pytest.raises(Conflict):
        session.replace(f"{MAPS}/swap", json.dumps(made | {"data": {"a": "2"}}).encode())
    with pytest.raises(ApiError) as why:
        session.create(MAPS, json.dumps(a_map("swap")).encode())
    assert why.value.reason == "AlreadyExists"


@dataclass
class Voter:
    """One candidate with a thread and a session of its own."""

    session: Session
    name: str
    lease: str
    told: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        hear = {"gained": lambda: self.told.append("gained"), "lost": lambda: self.told.append("lost")}
        self.election = Election(self.session, "default", self.lease, duration=SHORT, identity=self.name, **hear)
        self.thread = threading.Thread(target=self.election.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.stop.set()
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.session.close()


def test_one_leads_and_the_next_follows_at_once_when_it_goes_or_in_time_when_it_dies(
    real: RealApi, login: Path
) -> None:
    voters = [Voter(Session.open(login), f"voter-{number}", "race") for number in range(3)]
    try:
        first = until(lambda: [each for each in voters if each.election.leading()], "somebody leads")
        assert len(first) == 1
        first[0].end()
        assert first[0].told == ["gained", "lost"]
        rest = [each for each in voters if each is not first[0]]
        second = until(lambda: [each for each in rest if each.election.leading()], "the next one leads")
        assert len(second) == 1
        second[0].session.close()  # as if it were cut off
        (third,) = [each for each in rest if each is not second[0]]
        while not third.election.leading():
            assert [each.election.leading() for each in voters].count(True) <= 1
        assert not second[0].election.leading()
        until(lambda: second[0].told == ["gained", "lost"], "a lost lease is told")
        assert second[0].election.trouble()
        found = real.api.get(f"{LEASES}/race")["spec"]
        assert found["holderIdentity"] == third.name
        assert found["leaseTransitions"] >= 2
    finally:
        for each in voters:
            each.end()
    assert real.api.get(f"{LEASES}/race")["spec"]["holderIdentity"] == ""


def test_a_lease_taken_away_by_hand_is_given_up(real: RealApi, login: Path) -> None:
    voter = Voter(Session.open(login), "mine", "taken")
    try:
        until(voter.election.leading, "it leads")
        real.api.merge(f"{LEASES}/taken", {"spec": {"holderIdentity": "a-person"}})
        until(lambda: "lost" in voter.told, "it gives up")
        assert voter.election.holder() == "a-person"
        until(lambda: voter.told == ["gained", "lost", "gained"], "nobody renews it, so it is free again")
    finally:
        voter.end()


def test_events_stand_at_their_object_and_count(real: RealApi, session: Session) -> None:
    events = Events(session, "test")
    stop = threading.Event()
    thread = threading.Thread(target=events.run, args=(stop,), daemon=True)
    thread.start()
    about = Regarding(kind="ConfigMap", name="told", namespace="default")
    node = Regarding(kind="Node", name="n1")
    for each in (about, node, about):
        events.tell(News(about=each, type="Warning", reason="Odd", message="it is odd"))

    def found(name: str) -> list[int]:
        listed = real.api.get("/api/v1/namespaces/default/events", fieldSelector=f"involvedObject.name={name}")
        return [each["count"] for each in listed["items"]]

    until(lambda: found("told") == [2], "one Event, counted twice")
    assert found("n1") == [1]
    stop.set()
    events.wake()
    thread.join(10)


def test_a_server_that_goes_away_is_told_in_words(login: Path) -> None:
    session = Session.open(login)
    session.close()
    with pytest.raises(TryLater, match="closed"):
        session.get(MAPS)
