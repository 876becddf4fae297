"""An election over a real wire, with a server that keeps one Lease."""

from __future__ import annotations

import datetime as dt
import json
import threading
from pathlib import Path
from typing import Any

from fakes.watch_server import session_with, until, watch_server
from protokube.controllers.candidate import Lease
from protokube.controllers.election import Election, lease_of, tree_of

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678, dt.UTC)
STAMP = "2026-01-02T03:04:05.000678Z"


def lease(holder: str = "me", version: str = "7") -> Lease:
    return Lease(holder=holder, duration=15.0, transitions=2, version=version)


def test_a_new_lease_has_all_that_others_read() -> None:
    assert tree_of({}, lease(version=""), "space", "name", NOW) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "space", "name": "name"},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 2,
            "acquireTime": STAMP,
            "renewTime": STAMP,
        },
    }


def test_a_renewal_names_the_version_and_keeps_what_others_put_there() -> None:
    old: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}, "resourceVersion": "7", "managedFields": [1]},
        "spec": {"holderIdentity": "me", "acquireTime": "then", "theirs": 1},
    }
    tree = tree_of(old, lease(), "space", "name", NOW)
    assert tree["metadata"] == {"labels": {"a": "b"}, "resourceVersion": "7", "namespace": "space", "name": "name"}
    assert (tree["spec"]["acquireTime"], tree["spec"]["theirs"]) == ("then", 1)
    assert tree_of(old, lease("other"), "space", "name", NOW)["spec"]["acquireTime"] == STAMP


def test_a_lease_that_somebody_made_by_hand_can_be_read() -> None:
    assert lease_of({"metadata": {"resourceVersion": "3"}}) == Lease(holder="", duration=15.0, version="3")
    spec = {"holderIdentity": None, "leaseDurationSeconds": 4, "leaseTransitions": 9}
    read = lease_of({"metadata": {"resourceVersion": "3"}, "spec": spec})
    assert read == Lease(holder="", duration=4.0, transitions=9, version="3")


def test_who_cannot_reach_the_server_does_not_lead_and_a_callback_that_fails_ends_nothing(tmp_path: Path) -> None:
    announcements = list[str]()

    def fails() -> None:
        announcements.append("we lead")
        raise ZeroDivisionError

    made = tree_of({}, lease("", version="7"), "space", "name", NOW)
    nonsense = (200, dict[str, str](), b"nonsense")

    def says(*answers: tuple[int, dict[str, str], bytes]) -> None:
        with server.lock:
            server.scripted.clear()
            server.scripted.extend([*answers, *[answers[-1]] * 10000])

    stop = threading.Event()
    with watch_server() as server, session_with(server, tmp_path) as session:
        says(nonsense)
        election = Election(session, "space", "name", gained=fails, duration=1.0)
        thread = threading.Thread(target=election.run, args=(stop,), daemon=True)
        thread.start()
        try:
            until(lambda: "is no Lease" in election.trouble(), "it says what is wrong")
            assert not election.leading()
            mine = tree_of(made, lease(election.identity, "8"), "space", "name", NOW)
            # a free Lease, then our write of it, however often it is written
            says(*((200, {}, json.dumps(tree).encode()) for tree in (made, mine)))
            until(lambda: announcements and election.leading(), "it leads")
            says(nonsense)
            until(lambda: not election.leading(), "nothing it hears later is a renewal")
            assert thread.is_alive()
        finally:
            stop.set()
            thread.join(10)
        assert not thread.is_alive()


def test_every_candidate_has_a_name_of_its_own(tmp_path: Path) -> None:
    with watch_server() as server, session_with(server, tmp_path) as session:
        assert Election(session, "space", "name").identity != Election(session, "space", "name").identity
