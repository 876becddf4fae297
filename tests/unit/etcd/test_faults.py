"""The error replies of etcd: whether a retry helps, or a person has to act."""

from __future__ import annotations

from typing import Any

import pytest

from protokube.errors import Refused, TryLater
from protokube.etcd.faults import Code, Fault, fault_in


def answer(message: str, code: int) -> dict[str, Any]:
    return {"error": message, "message": message, "code": code}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("etcdserver: too many learner members in cluster", 9),
        ("etcdserver: can only promote a learner member which is in sync with leader", 9),
        ("etcdserver: re-configuration failed due to not enough started members", 9),
        ("etcdserver: unhealthy cluster", 14),
        ("etcdserver: no leader", 14),
        ("etcdserver: request timed out", 14),
        ("context deadline exceeded", 2),
        ("etcdserver: mvcc: required revision has been compacted", 11),
        ("etcdserver: mvcc: database space exceeded", 8),
        ("etcdserver: requested lease not found", 5),
    ],
)
def test_what_passes_by_itself_is_asked_again_later(message: str, code: int) -> None:
    fault = fault_in(503, answer(message, code))

    assert fault is not None
    error = fault.explained("cannot do it")
    assert isinstance(error, TryLater)
    assert error.message == f"cannot do it: {message}"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("etcdserver: member ID already exist", 9),
        ("etcdserver: can only promote a learner member", 9),
        ("etcdserver: given member URLs are invalid", 3),
        ("etcdserver: member not found", 5),
        ("etcdserver: permission denied", 7),
    ],
)
def test_what_asking_again_cannot_mend_is_for_a_person(message: str, code: int) -> None:
    fault = fault_in(400, answer(message, code))

    assert fault is not None
    assert isinstance(fault.explained("cannot do it"), Refused)
    assert fault.explained("cannot do it").hint


def test_an_answer_without_an_error_is_none() -> None:
    assert fault_in(200, {"header": {}}) is None


def test_the_error_of_a_stream_is_found_one_level_deeper() -> None:
    document = {"error": {"grpc_code": 14, "http_code": 503, "message": "etcdserver: no leader"}}

    fault = fault_in(503, document)

    assert fault is not None
    assert (fault.code, fault.message) == (Code.UNAVAILABLE, "etcdserver: no leader")


def test_an_error_inside_a_stream_that_began_well_is_still_an_error() -> None:
    fault = fault_in(200, {"error": {"grpc_code": 4, "message": "context deadline exceeded"}})

    assert fault is not None
    assert fault.elsewhere


def test_what_is_not_etcd_is_said_to_be_so_and_a_broken_proxy_is_asked_again() -> None:
    stranger, proxy = fault_in(404, "Not Found"), fault_in(502, "Bad Gateway")

    assert stranger is not None
    assert proxy is not None
    assert "not etcd's JSON API" in str(stranger.explained("cannot list"))
    assert isinstance(stranger.explained("cannot list"), Refused)
    assert isinstance(proxy.explained("cannot list"), TryLater)


def test_an_error_that_says_nothing_shows_its_status() -> None:
    fault = fault_in(500, {})

    assert fault is not None
    assert "HTTP status 500" in fault.message


def test_only_the_trouble_of_one_member_is_taken_to_the_next() -> None:
    assert Fault(Code.UNAVAILABLE, "etcdserver: no leader").elsewhere
    assert not Fault(Code.FAILED_PRECONDITION, "etcdserver: too many learner members in cluster").elsewhere
    assert not Fault(Code.NOT_FOUND, "etcdserver: member not found").elsewhere


def test_a_learner_that_turns_a_write_away_has_certainly_not_done_it() -> None:
    assert Fault(Code.UNAVAILABLE, "etcdserver: rpc not supported for learner").untouched
    assert not Fault(Code.UNAVAILABLE, "etcdserver: request timed out").untouched


def test_a_full_etcd_says_what_to_do_about_it() -> None:
    assert (
        "defragment" in Fault(Code.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded").explained("x").hint
    )
