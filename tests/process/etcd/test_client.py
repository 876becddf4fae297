"""Which member is asked, how often, and which error a caller gets, against gateways that behave as the test says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from clusters.daemon import until
from fakes.etcd_gateways import Answer, Gateway, Late, drips, fails, hangs_up, is_silent, says
from fakes.ports import kept_port
from protokube.errors import Refused, TryLater
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.messages import to_wire

HEADER = {"cluster_id": "1", "member_id": "2", "revision": "7"}
WRITTEN = says({"header": HEADER})
NO_LEADER = fails("etcdserver: no leader", 14)
LEARNER = fails("etcdserver: rpc not supported for learner", 14)
KEYS = says({"header": HEADER, "kvs": [{"key": to_wire("k"), "value": to_wire("v"), "mod_revision": "7"}]})
STATUS = says({"header": HEADER, "leader": "2", "version": "3.5.21", "dbSize": "1"})

Build = Callable[..., GatewayEtcd]


class Far:
    """Gateways a, b, c, ... and clients of them."""

    def __init__(self) -> None:
        self.gateways: dict[str, Gateway] = {}
        self._clients: list[GatewayEtcd] = []

    def client(self, *answers: Answer, timeout: float = 60) -> GatewayEtcd:
        self.gateways = {name: Gateway(answer) for name, answer in zip("abc", answers, strict=False)}
        return self.of({name: each.url for name, each in self.gateways.items()}, timeout)

    def of(self, endpoints: dict[str, str], timeout: float = 60) -> GatewayEtcd:
        self._clients.append(GatewayEtcd(endpoints, timeout=timeout))
        return self._clients[-1]

    def request_counts(self) -> list[int]:
        """How many requests each one got."""
        return [len(each.requests) for each in self.gateways.values()]

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for gateway in self.gateways.values():
            gateway.close()


@pytest.fixture
def far() -> Iterator[Far]:
    built = Far()
    yield built
    built.close()


@pytest.mark.parametrize("trouble", [NO_LEADER, LEARNER, hangs_up, is_silent, drips, says("Bad Gateway", 502)])
def test_a_read_goes_on_to_the_next_member_whatever_is_wrong_with_the_first(far: Far, trouble: Answer) -> None:
    client = far.client(trouble, KEYS, KEYS, timeout=6 if trouble in (is_silent, drips) else 60)

    assert [each.value for each in client.read("k")] == ["v"]
    until(lambda: far.request_counts()[0])  # one that is silent may read what it was sent after we went on
    assert far.request_counts() == [1, 1, 0]


def test_the_member_that_answered_last_is_asked_first(far: Far) -> None:
    client = far.client(NO_LEADER, KEYS)
    for _ in range(3):
        client.read("k")

    assert far.request_counts() == [1, 3]


def test_nobody_answering_is_told_with_a_reason_for_each_and_within_the_time(far: Far) -> None:
    client = far.client(is_silent, NO_LEADER, hangs_up, timeout=0.6)
    started = time.monotonic()

    with pytest.raises(TryLater, match="no member of etcd answered") as caught:
        client.read("k")

    assert time.monotonic() - started < 10
    assert [part[:2] for part in caught.value.saw.split("; ")] == ["a:", "b:", "c:"]


@pytest.mark.parametrize("trouble", [hangs_up, is_silent])
@pytest.mark.parametrize("write", ["put", "create", "add_learner"])
def test_a_write_that_got_no_answer_is_not_sent_to_another_member(far: Far, trouble: Answer, write: str) -> None:
    client = far.client(trouble, WRITTEN, timeout=1.5 if trouble is is_silent else 60)
    arguments = ["https://etcd-d:2380"] if write == "add_learner" else ["k", "v"]

    with pytest.raises(TryLater, match="may have been done or not"):
        getattr(client, write)(*arguments)

    until(lambda: far.request_counts()[0])
    assert far.request_counts() == [1, 0]


def test_after_a_write_without_an_answer_the_next_call_begins_with_another_member(far: Far) -> None:
    client = far.client(is_silent, WRITTEN, timeout=2)
    with pytest.raises(TryLater):
        client.put("k", "v")
    client._timeout = 60

    assert client.put("k", "v") == 7
    until(lambda: far.request_counts()[0])
    assert far.request_counts() == [1, 1]


def test_a_write_that_could_not_be_sent_goes_to_the_next_member(far: Far) -> None:
    far.gateways = {"b": Gateway(WRITTEN)}
    with kept_port() as port:
        assert far.of({"a": f"http://127.0.0.1:{port}", "b": far.gateways["b"].url}).put("k", "v") == 7


def test_a_write_that_a_learner_turned_away_goes_to_the_next_member(far: Far) -> None:
    assert far.client(LEARNER, WRITTEN).put("k", "v") == 7
    assert far.request_counts() == [1, 1]


def test_a_write_that_timed_out_inside_etcd_is_not_sent_again(far: Far) -> None:
    client = far.client(fails("etcdserver: request timed out", 14), WRITTEN)

    with pytest.raises(TryLater, match="request timed out"):
        client.put("k", "v")

    assert far.request_counts() == [1, 0]


def test_a_write_survives_a_member_that_was_restarted_in_between(far: Far) -> None:
    client = far.client(WRITTEN)
    client.put("k", "1")
    far.gateways["a"].hang_up()
    time.sleep(0.05)

    assert client.put("k", "2") == 7
    assert far.gateways["a"].accepted == 2


def test_one_connection_serves_many_calls(far: Far) -> None:
    client = far.client(KEYS)
    for _ in range(5):
        client.read("k")

    assert far.gateways["a"].accepted == 1


def test_an_answer_for_a_person_is_not_asked_of_others(far: Far) -> None:
    client = far.client(fails("etcdserver: given member URLs are invalid", 3, 400), WRITTEN)

    with pytest.raises(Refused, match="URLs are invalid"):
        client.add_learner("nonsense")

    assert far.request_counts() == [1, 0]


def test_the_members_are_listed_by_the_one_that_proved_a_quorum(far: Far) -> None:
    far.gateways = {
        "a": Gateway(NO_LEADER, says({"members": [{"ID": "66", "name": "old"}]})),
        "b": Gateway(says({"header": HEADER}), says({"members": [{"ID": "5", "name": "b"}]})),
    }
    client = far.of({name: each.url for name, each in far.gateways.items()})

    assert [each.name for each in client.members()] == ["b"]
    assert [path for path, _ in far.gateways["a"].requests] == ["/v3/kv/range"]
    assert [path for path, _ in far.gateways["b"].requests] == ["/v3/kv/range", "/v3/cluster/member/list"]


def test_a_question_to_one_member_is_asked_of_no_other(far: Far) -> None:
    client = far.client(NO_LEADER, says({"header": HEADER}))

    with pytest.raises(TryLater, match="a: etcdserver: no leader"):
        client.status("a")

    assert client.status("b").revision == 7
    assert far.request_counts() == [1, 1]


def test_a_member_that_nobody_named_is_refused(far: Far) -> None:
    client = far.client(KEYS)

    for call in (client.status, client.listed_by, lambda name: client.hash(name, 1)):
        with pytest.raises(Refused, match="no member is called 'x'"):
            call("x")


def test_removing_and_revoking_what_is_gone_is_nothing(far: Far) -> None:
    client = far.client(fails("etcdserver: member not found", 5, 404))

    client.remove(5)
    client.revoke(5)


def test_removing_may_be_asked_of_the_next_member(far: Far) -> None:
    far.client(is_silent, fails("etcdserver: member not found", 5, 404), timeout=5).remove(5)

    until(lambda: far.request_counts()[0])
    assert far.request_counts() == [1, 1]


def test_promoting_a_voter_is_nothing_and_one_that_is_behind_is_asked_again(far: Far) -> None:
    far.gateways = {
        "a": Gateway(
            fails("etcdserver: can only promote a learner member", 9, 412),
            fails("etcdserver: can only promote a learner member which is in sync with leader", 9, 412),
            fails("etcdserver: member not found", 5, 404),
        )
    }
    client = far.of({"a": far.gateways["a"].url})

    client.promote(5)
    with pytest.raises(TryLater, match="in sync"):
        client.promote(5)
    with pytest.raises(Refused, match="not found"):
        client.promote(5)


def test_a_lease_that_is_gone_has_no_time_to_live(far: Far) -> None:
    far.gateways = {"a": Gateway(says({"result": {"ID": "5", "TTL": "4"}}), says({"result": {"ID": "5"}}))}
    client = far.of({"a": far.gateways["a"].url})

    assert client.keep(5)
    assert not client.keep(5)
    assert far.gateways["a"].requests[0] == ("/v3/lease/keepalive", {"ID": "5"})


def test_creating_asks_etcd_to_compare(far: Far) -> None:
    far.gateways = {"a": Gateway(says({"header": HEADER, "succeeded": True}), says({"header": HEADER}))}
    client = far.of({"a": far.gateways["a"].url})

    assert [client.create("k", "v", lease=9) for _ in range(2)] == [True, False]
    path, body = far.gateways["a"].requests[0]
    assert path == "/v3/kv/txn"
    assert body["compare"][0]["target"] == "CREATE"
    assert body["success"][0]["request_put"] == {"key": to_wire("k"), "value": to_wire("v"), "lease": "9"}


def test_without_endpoints_nobody_answers() -> None:
    with pytest.raises(TryLater):
        GatewayEtcd({}).members()


def test_a_survey_does_not_wait_for_the_one_that_is_not_expected_once_all_others_have_answered(far: Far) -> None:
    client = far.client(is_silent, STATUS, STATUS)

    assert client.survey(3600, unlikely="a").keys() == {"b", "c"}


def test_a_survey_waits_its_time_for_the_others(far: Far) -> None:
    client = far.client(STATUS, STATUS, is_silent)
    started = time.monotonic()

    assert client.survey(1.0, unlikely="a").keys() == {"a", "b"}

    assert time.monotonic() - started >= 1.0


def test_a_call_that_ends_after_the_client_was_closed_leaves_no_connection_open(far: Far) -> None:
    late = Late(STATUS)
    client = far.client(STATUS, late)
    assert list(client.survey(60, unlikely="b")) == ["a"]
    until(lambda: far.request_counts() == [1, 1])

    client.close()
    late.go_on.set()

    until(lambda: not sum(each.connected for each in far.gateways.values()))


def test_a_closed_client_may_be_used_again_and_keeps_nothing_open(far: Far) -> None:
    client = far.client(KEYS)
    client.close()

    assert [each.value for each in client.read("k")] == ["v"]
    until(lambda: not far.gateways["a"].connected)


def test_after_a_survey_calls_begin_with_a_member_that_answered(far: Far) -> None:
    far.gateways = {"a": Gateway(is_silent), "b": Gateway(STATUS, KEYS)}
    client = far.of({name: each.url for name, each in far.gateways.items()})
    client.survey(3600, unlikely="a")
    until(lambda: far.request_counts()[0])

    assert [each.value for each in client.read("k")] == ["v"]

    assert far.request_counts() == [1, 2]
