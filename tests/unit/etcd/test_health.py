"""The answer of the port for probes, in one line."""

from __future__ import annotations

import pytest

from fakes.ports import kept_port
from protokube.etcd.health import why_unhealthy
from unit.etcd.gateways import Answer, Gateway, hangs_up, is_silent, says


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says({"health": "true"}), ""),
        (says({"health": "true", "reason": ""}), ""),
        (says({"health": "false"}, 503), "no leader"),
        (says({"health": "false", "reason": "RAFT NO LEADER"}, 503), "RAFT NO LEADER"),
        (says("404 page not found", 404), "not an answer of etcd: HTTP status 404"),
        (says(["true"]), "not an answer of etcd"),
        (hangs_up, "no answer"),
        (is_silent, "no answer: timed out"),
    ],
)
def test_whatever_the_port_answers_is_healthy_or_has_a_reason(answer: Answer, why: str) -> None:
    gateway = Gateway(answer)
    reason = why_unhealthy(gateway.url, 0.3 if answer is is_silent else 20)
    gateway.close()

    assert why in reason
    assert bool(reason) == bool(why)


def test_a_member_that_is_not_there_is_not_healthy() -> None:
    with kept_port() as port:
        assert "no answer" in why_unhealthy(f"http://127.0.0.1:{port}")
