"""One persistent connection: replies, failures without a reply, and deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from fakes.etcd_gateways import Answer, Gateway, drips, hangs_up, is_silent, says
from fakes.ports import kept_port
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target
from protokube.etcd.wire import NoAnswer, Wire

Serve = Callable[..., Gateway]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start gateways; all end with the test."""
    started: list[Gateway] = []

    def start(*answers: Answer) -> Gateway:
        started.append(Gateway(*answers))
        return started[-1]

    yield start
    for each in started:
        each.close()


def wire_to(gateway: Gateway) -> Wire:
    return Wire(Target.of(gateway.url), None, Deadline.after(20))


def test_documents_go_out_and_come_back_on_one_connection(serve: Serve) -> None:
    gateway = serve(says({"n": "1"}), says({"n": "2"}, 503), says("Not Found", 404))
    wire = wire_to(gateway)

    answers = [wire.exchange("/v3/x", {"key": "YQ=="}, Deadline.after(20)) for _ in range(3)]
    wire.close()

    assert answers == [(200, {"n": "1"}), (503, {"n": "2"}), (404, "Not Found")]
    assert gateway.requests == [("/v3/x", {"key": "YQ=="})] * 3
    assert gateway.accepted == 1


def test_without_a_document_it_is_a_question(serve: Serve) -> None:
    gateway = serve(says({"health": "true"}))
    wire = wire_to(gateway)

    assert wire.exchange("/health", None, Deadline.after(20)) == (200, {"health": "true"})
    assert gateway.requests == [("/health", None)]
    wire.close()


@pytest.mark.parametrize("answer", [hangs_up, is_silent, drips])
def test_an_answer_that_never_came_says_that_the_request_was_sent(serve: Serve, answer: Answer) -> None:
    wire = wire_to(serve(answer))
    started = time.monotonic()

    with pytest.raises(NoAnswer) as caught:
        wire.exchange("/v3/x", {}, Deadline.after(1))

    assert caught.value.sent
    assert str(caught.value)
    assert time.monotonic() - started < 10
    wire.close()


def test_nothing_is_sent_when_the_time_is_already_up(serve: Serve) -> None:
    gateway = serve(says({}))
    wire = wire_to(gateway)

    with pytest.raises(NoAnswer) as caught:
        wire.exchange("/v3/x", {}, Deadline.after(-1))

    assert not caught.value.sent
    assert gateway.requests == []
    wire.close()


def test_nobody_there_is_an_answer_that_was_not_sent() -> None:
    with kept_port() as port, pytest.raises(NoAnswer, match="refused") as caught:
        Wire(Target("127.0.0.1", port, secure=False), None, Deadline.after(20))

    assert not caught.value.sent


def test_a_connection_that_the_other_side_closed_is_noticed_before_anything_is_sent(serve: Serve) -> None:
    gateway = serve(says({}))
    wire = wire_to(gateway)
    wire.exchange("/v3/x", {}, Deadline.after(20))
    assert wire.idle()

    gateway.hang_up()
    time.sleep(0.05)

    assert not wire.idle()
    wire.close()
    assert not wire.idle()


def test_https_without_a_certificate_of_ours_is_no_answer(serve: Serve) -> None:
    target = Target("127.0.0.1", Target.of(serve(says({})).url).port, secure=True)

    with pytest.raises(NoAnswer, match="we have no certificate"):
        Wire(target, None, Deadline.after(20))
