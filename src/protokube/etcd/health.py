"""The health endpoint of a member, on its metrics port: needs no certificate, and proves no agreement."""

from __future__ import annotations

from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target
from protokube.etcd.wire import NoAnswer, Wire


def why_unhealthy(metrics_url: str, timeout: float = 1.0) -> str:
    """Why the member with a metrics URL such as http://127.0.0.1:2390 is unhealthy; empty if it is healthy."""
    deadline = Deadline.after(timeout)
    try:
        wire = Wire(Target.of(metrics_url), None, deadline)
        try:
            status, reply = wire.exchange("/health", None, deadline)
        finally:
            wire.close()
    except NoAnswer as why:
        return f"no answer: {why}"
    if not isinstance(reply, dict) or "health" not in reply:
        return f"not an answer of etcd: HTTP status {status}"
    return "" if reply["health"] == "true" else str(reply.get("reason") or "it has no leader, or an alarm is set")
