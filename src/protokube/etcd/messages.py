"""Convert etcd's JSON to our values. 64-bit numbers are strings, bytes base64; zero and empty values are omitted."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from protokube.etcd import Alarm, KeyValue, Status
from protokube.members.start_values import Listed

BYTES = "surrogateescape"
"""Any bytes in etcd survive decoding to text and encoding back."""


def to_wire(text: str) -> str:
    return b64encode(text.encode(errors=BYTES)).decode()


def put(key: str, value: str, lease: int) -> dict[str, str]:
    """A put request."""
    return {"key": to_wire(key), "value": to_wire(value), "lease": str(lease)}


def from_wire(text: str) -> str:
    return b64decode(text).decode(errors=BYTES)


def prefix_range(prefix: str) -> dict[str, str]:
    """The range of all keys with this prefix; every key if it is empty."""
    start = prefix.encode(errors=BYTES)
    stem = start.rstrip(b"\xff")
    end = stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\0"
    return {"key": b64encode(start or b"\0").decode(), "range_end": b64encode(end).decode()}


def listed(document: Mapping[str, Any]) -> Listed:
    return Listed(
        id=int(document["ID"]),
        name=document.get("name", ""),
        peer_urls=tuple(document.get("peerURLs", ())),
        client_urls=tuple(document.get("clientURLs", ())),
        learner=bool(document.get("isLearner")),
    )


def list_of_members(document: Mapping[str, Any]) -> tuple[Listed, ...]:
    return tuple(sorted((listed(each) for each in document.get("members", ())), key=lambda member: member.id))


def status(document: Mapping[str, Any]) -> Status:
    header = document["header"]
    return Status(
        cluster_id=int(header["cluster_id"]),
        member_id=int(header["member_id"]),
        leader=int(document.get("leader", 0)),
        revision=int(header.get("revision", 0)),
        raft_term=int(document.get("raftTerm", 0)),
        raft_index=int(document.get("raftIndex", 0)),
        applied_index=int(document.get("raftAppliedIndex", 0)),
        db_size=int(document.get("dbSize", 0)),
        version=document.get("version", ""),
        learner=bool(document.get("isLearner")),
        errors=tuple(document.get("errors", ())),
        db_size_in_use=int(document.get("dbSizeInUse", 0)),
        quota=int(document.get("dbSizeQuota", 0)),
    )


def cluster_version(document: Mapping[str, Any]) -> str:
    """Of the reply to GET /version; empty before the members have agreed on one."""
    found = str(document.get("etcdcluster", ""))
    return "" if found == "not_decided" else found


def alarms(reply: Mapping[str, Any]) -> tuple[Alarm, ...]:
    found = reply.get("alarms", ())
    return tuple(sorted(Alarm(int(each.get("memberID", 0)), str(each.get("alarm", ""))) for each in found))


def key_value(document: Mapping[str, Any]) -> KeyValue:
    return KeyValue(
        key=from_wire(document["key"]),
        value=from_wire(document.get("value", "")),
        lease=int(document.get("lease", 0)),
        mod_revision=int(document["mod_revision"]),
    )
