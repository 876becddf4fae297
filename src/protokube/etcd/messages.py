"""etcd's JSON and our values. Its 64-bit numbers are text, its bytes base64, and what is zero or empty is left out."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from protokube.etcd import Alarm, KeyValue, Status
from protokube.members.start import Listed

BYTES = "surrogateescape"
"""Whatever is in etcd comes through as text and goes back as it was."""


def to_wire(text: str) -> str:
    return b64encode(text.encode(errors=BYTES)).decode()


def from_wire(text: str) -> str:
    return b64decode(text).decode(errors=BYTES)


def prefix_range(prefix: str) -> dict[str, str]:
    """All keys that begin so; every key if nothing is said."""
    start = prefix.encode(errors=BYTES)
    stem = start.rstrip(b"\xff")
    end = stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\0"
    return {"key": b64encode(start or b"\0").decode(), "range_end": b64encode(end).decode()}


def listed(told: Mapping[str, Any]) -> Listed:
    return Listed(
        id=int(told["ID"]),
        name=told.get("name", ""),
        peer_urls=tuple(told.get("peerURLs", ())),
        client_urls=tuple(told.get("clientURLs", ())),
        learner=bool(told.get("isLearner")),
    )


def list_of_members(told: Mapping[str, Any]) -> tuple[Listed, ...]:
    return tuple(sorted((listed(each) for each in told.get("members", ())), key=lambda member: member.id))


def status(told: Mapping[str, Any]) -> Status:
    header = told["header"]
    return Status(
        cluster_id=int(header["cluster_id"]),
        member_id=int(header["member_id"]),
        leader=int(told.get("leader", 0)),
        revision=int(header.get("revision", 0)),
        raft_term=int(told.get("raftTerm", 0)),
        raft_index=int(told.get("raftIndex", 0)),
        applied_index=int(told.get("raftAppliedIndex", 0)),
        db_size=int(told.get("dbSize", 0)),
        version=told.get("version", ""),
        learner=bool(told.get("isLearner")),
        errors=tuple(told.get("errors", ())),
        db_size_in_use=int(told.get("dbSizeInUse", 0)),
        quota=int(told.get("dbSizeQuota", 0)),
    )


def alarms(reply: Mapping[str, Any]) -> tuple[Alarm, ...]:
    found = reply.get("alarms", ())
    return tuple(sorted(Alarm(int(each.get("memberID", 0)), str(each.get("alarm", ""))) for each in found))


def key_value(told: Mapping[str, Any]) -> KeyValue:
    return KeyValue(
        key=from_wire(told["key"]),
        value=from_wire(told.get("value", "")),
        lease=int(told.get("lease", 0)),
        mod_revision=int(told["mod_revision"]),
    )
