"""What goes on beside the rounds and does not: every round says so, and nobody is elected by what is old."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.agent import a_machine, a_round
from clusters.etcd import eventually
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import FakeClock, HostClock
from clusters.scenario.host import tmpfs
from protokube.agent import threads
from protokube.agent.controlplane.apiserver import ApiWatch
from protokube.agent.etcd.agreement import AgreementWatch
from protokube.agent.etcd.presence import EVERY, TTL, LeasePresence
from protokube.agent.etcd.spacewatch import SpaceWatch
from protokube.agent.etcd.stalled_peers import StalledPeers
from protokube.agent.sync import ROUND
from protokube.etcd.client import GatewayEtcd
from protokube.host.clock import SystemClock
from protokube.host.supervised import Supervised, Workers

GOOD: dict[str, Any] = {
    "/v3/lease/grant": {"ID": "7", "TTL": "5"},
    "/v3/lease/keepalive": {"result": {"ID": "7", "TTL": "5"}},
    "/v3/kv/range": {"header": {}, "kvs": []},
    "/v3/kv/put": {"header": {"revision": "3"}},
    "/v3/kv/txn": {"header": {}, "succeeded": True},
}
MALFORMED = [
    b"not json at all", b"", b"[]", b"null", b"7", b'"text"', b"{", b"\xff\xfe\x00", b"{}", b'{"ID": "seven"}',
    b'{"ID": null}', b'{"result": []}', b'{"result": {"TTL": "soon"}}', b'{"kvs": 3}', b'{"kvs": [3]}',
    b'{"kvs": [{"key": "%%%", "value": "", "mod_revision": "1"}]}', b'{"kvs": [{"key": "/w==", "mod_revision": "1"}]}',
    b'{"kvs": [{"value": "e30="}]}', b'{"error": 5, "code": "x"}', b'{"header": 4}', b"[" * 5000,
]  # fmt: skip


class Far:
    """An etcd on loopback, as far as leases go; it answers what the test says instead, for as long as it says so."""

    def __init__(self) -> None:
        self.instead: bytes | None = None
        self.cut_short = False
        far = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                body = json.dumps(GOOD[self.path]).encode() if far.instead is None else far.instead
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) + far.cut_short * 10))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = far.cut_short

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def etcd(far: Far) -> Iterator[GatewayEtcd]:
    client = GatewayEtcd({"etcd-a": far.url}, timeout=5.0)
    yield client
    client.close()


def soon(true: Any) -> bool:
    return eventually(lambda: "" if true() else "not yet") == ""


@pytest.mark.parametrize("answer", MALFORMED, ids=lambda answer: repr(answer[:40]))
def test_no_answer_of_etcd_ends_presence(far: Far, etcd: GatewayEtcd, answer: bytes) -> None:
    """Whatever comes back, the next beat is made; and once the answers are right, the master is elected."""
    presence = LeasePresence(etcd, a_machine(), SystemClock())
    worker = Supervised("presence", presence.work)
    far.instead = answer
    for _ in range(3):
        assert 0 < worker.once() <= TTL
        assert not presence.elected()
        assert presence.live() is None
    far.instead = None
    worker.once()
    assert presence.elected()
    assert presence.live() == {"i-1": "10.0.0.1"}
    assert worker.failures == 0


def test_presence_goes_on_in_its_thread_after_answers_that_were_cut_short_or_made_no_sense(
    far: Far, etcd: GatewayEtcd
) -> None:
    presence = LeasePresence(etcd, a_machine(), SystemClock())
    worker = Supervised("presence", presence.work, longest=1.0)
    round_ = a_round(Path("/nowhere"), workers=Workers([worker]))
    worker.start()
    assert soon(presence.elected)
    far.cut_short = True
    assert soon(lambda: not presence.elected())
    far.instead, far.cut_short = b'{"kvs": 3, "result": []}', False
    assert soon(lambda: worker.failures)
    threads.sync(round_)
    (bug,) = round_.report.bugs
    assert bug.text.startswith("thread presence failed and is tried again: ")
    assert not presence.elected()
    far.instead = None
    assert soon(lambda: presence.elected() and worker.trouble() is None)
    worker.stop()


@pytest.mark.parametrize("answer", MALFORMED, ids=lambda answer: repr(answer[:40]))
def test_no_answer_of_etcd_ends_the_comparison_or_the_watch_of_its_space(
    far: Far, etcd: GatewayEtcd, answer: bytes
) -> None:
    watching, space = AgreementWatch({"main": etcd}, {"main": ["etcd-a"]}), SpaceWatch({"main": etcd}, SystemClock())
    far.instead = answer
    for work in (watching.work, space.work):
        assert Supervised("work", work).once() > 0
    assert etcd.survey(5.0) == {} or answer == b"{}"


def test_every_round_reports_what_hangs_and_what_failed_and_a_round_looks_before_it_ends() -> None:
    clock = FakeClock()
    failing = Supervised("agreement", lambda: list[float]()[0])
    failing._thread = threading.current_thread()
    failing.once()
    round_ = a_round(Path("/nowhere"), clock=HostClock(clock), workers=Workers([failing]))
    for _ in range(3):
        round_.report = type(round_.report)()
        threads.sync(round_)
        assert round_.report.sentence() == (
            "threads BROKEN: thread agreement failed and is tried again: IndexError: list index out of range"
        )
    assert "threads" in dict(ROUND)


def test_a_status_that_cannot_be_published_is_waited_for_with_its_reason() -> None:
    round_ = a_round(Path("/nowhere"), unpublished=lambda: "cannot reach s3://bucket")
    threads.sync(round_)

    assert round_.report.sentence() == "publish status: waits: cannot reach s3://bucket"


def test_an_agent_supervises_all_its_threads(etcd: GatewayEtcd) -> None:
    all_of_it = {"main": etcd}
    presence, never = LeasePresence(etcd, a_machine(), SystemClock()), threading.Event()

    def cloud(_wake: object) -> None:
        never.wait(60)

    found = threads.workers(
        presence, AgreementWatch(all_of_it, {"main": ["etcd-a"]}), SpaceWatch(all_of_it, SystemClock()),
        StalledPeers([]), ApiWatch(GoodApi(), lambda: None), cloud, lambda: None,
    )  # fmt: skip
    found.start()
    names = {"presence", "agreement", "space", "api server", "cloud"}
    assert names <= {each.name for each in threading.enumerate()}
    assert soon(presence.elected)
    assert found.troubles() == []
    found.stop()
    never.set()
    assert soon(lambda: not names & {each.name for each in threading.enumerate() if each.is_alive()})


class GoodApi:
    def text(self, _path: str) -> str:
        return "ok"


def test_a_watch_of_the_cloud_that_ends_is_begun_again(etcd: GatewayEtcd) -> None:
    begun: list[int] = []
    found = threads.workers(
        LeasePresence(etcd, a_machine(), SystemClock()), AgreementWatch({}, {}), SpaceWatch({}, SystemClock()),
        StalledPeers([]), None, lambda _wake: begun.append(1), lambda: None,
    )  # fmt: skip
    found.start()
    assert soon(lambda: len(begun) >= 2)
    assert any("the watch of the provider came to an end" in each.text for each in found.troubles())
    found.stop()


@given(st.lists(st.tuples(st.sampled_from(["beats", "dies", "back"]), st.integers(0, 2)), max_size=30))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_whoever_has_no_presence_is_not_elected_and_never_are_two(history: list[tuple[str, int]]) -> None:
    """Threads of presence die and come back, in any order; rounds go on."""
    with tmpfs() as folder:
        stage = Stage(folder)
        hosts = stage.boot_all()
        stage.until(stage.healthy)
        dead: dict[str, float] = {}
        for what, which in history:
            host = hosts[which]
            if what == "dies":
                dead.setdefault(host.id, stage.clock.seconds)
            elif what == "back":
                dead.pop(host.id, None)
            host.beat_due = float("inf") if host.id in dead else min(host.beat_due, stage.clock.seconds)
            stage.run(EVERY)
            elected = [each for each in hosts if each.presence.elected()]
            assert len(elected) <= 1
            for each in hosts:
                if stage.clock.seconds - dead.get(each.id, stage.clock.seconds) >= TTL:
                    assert not each.presence.elected()
                    assert each.presence.live() is None
                    assert each.presence.serving() is None
                    assert not each.presence.may_restart_api_server()
