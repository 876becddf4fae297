"""What a member says of its own health, on the port for probes: no certificate needed, and no proof of agreement."""

from __future__ import annotations

from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target
from protokube.etcd.wire import NoAnswer, Wire


def why_unhealthy(metrics_url: str, timeout: float = 1.0) -> str:
    """Why the member behind, say, http://127.0.0.1:2390 is not healthy; empty when it says that it is."""
    deadline = Deadline.after(timeout)
    try:
        wire = Wire(Target.of(metrics_url), None, deadline)
        try:
            status, told = wire.exchange("/health", None, deadline)
        finally:
            wire.close()
    except NoAnswer as why:
        return f"no answer: {why}"
    if not isinstance(told, dict) or "health" not in told:
        return f"not an answer of etcd: HTTP status {status}"
    return "" if told["health"] == "true" else str(told.get("reason") or "it has no leader, or an alarm is set")
