"""One record in the state store: what the agent of one master published, and how old it is. Pure.

Where the store tells when it was written, its age goes by that: all reports are then aged by one clock, that of the
store. Where it does not, by what that master took for the time, which may be wrong; one from the future counts as new.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from protokube.errors import Refused
from protokube.members.survey.answers import Answers, from_tree
from protokube.records.names import address_type, make_record
from protokube.view import leaves
from protokube.view.reports import read_agent
from protokube.view.values import AgentView

FORMAT = 1
"""The newest format of a record that this version knows in full."""
WITHIN = 360.0
"""Seconds within which the next report is published, for one that does not say so."""
EVERY = 60.0
"""Seconds between two publications, at least, for one that does not say so."""
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, Refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasesRead:
    """The etcd cluster whose leases were read, and its revision then: the only clock that all masters share."""

    cluster_id: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What one master published last."""

    machine: str
    """Its id."""
    name: str
    group: str
    address: str
    agent: AgentView
    at: float
    """When its round ended: by the store's clock, or, where the store has none, by its own."""
    skew: float | None = None
    """Seconds by which its clock is ahead of the store's, give or take the time that a write takes."""
    every: float = EVERY
    """Seconds between two publications, at least."""
    boot: bool = False
    """Its agent has had no round yet."""
    live: Mapping[str, str] | None = None
    """Addresses of the masters with a live lease, by id, as it saw them; None if it saw no quorum."""
    leases: LeasesRead | None = None
    """When it read them."""
    lost_for: float | None = None
    """Seconds for which it has seen no quorum by now; None if it saw one."""
    volumes: tuple[Mapping[str, Any], ...] | None = None
    """The last complete list, as rows of `view.parts`; None if its provider never answered."""
    listed_at: float = 0.0
    """When that list was read, as `at`."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    zone: bool = True
    """The names are in a DNS zone; otherwise each master has its own hosts file."""
    answers: Mapping[str, Answers] = field(default_factory=dict)
    """By etcd cluster, what the members answered to this master."""

    @property
    def stale(self) -> bool:
        return self.agent.stale


def read_published(data: bytes, now: float, modified: float | None = None) -> Published | None:
    """None if it is no such record, or of a version that this one cannot read. `modified`: by the store's clock."""
    try:
        return _read(leaves.fields(json.loads(data)), now, modified)
    except UNREADABLE:
        return None


def format_of(data: bytes) -> int:
    """0 if it is no record at all."""
    try:
        return leaves.whole(leaves.fields(json.loads(data)).get("format", FORMAT))
    except UNREADABLE:
        return 0


def is_followed(data: bytes) -> bool:
    """Whether it is from before its agent knew which machine it runs on, and another record follows it."""
    try:
        return bool(leaves.fields(json.loads(data)).get("followedBy"))
    except UNREADABLE:
        return False


def _read(tree: Mapping[str, Any], now: float, modified: float | None) -> Published:
    machine = leaves.fields(tree["machine"])
    own, waited = leaves.number(tree["at"]), max(leaves.optional_number(tree.get("waited")) or 0.0, 0.0)
    at = own if modified is None else modified - waited
    agent = read_agent(leaves.given(machine["name"]), tree, age=max(now - at, 0.0))
    lost, wrote = leaves.optional_number(tree["withoutQuorumSince"]), leaves.optional_number(tree.get("written"))
    live = None if tree["live"] is None else _names(tree["live"])
    return Published(
        machine=leaves.given(machine["id"]),
        name=leaves.given(machine["name"]),
        group=leaves.name(machine["group"]),
        address=leaves.name(machine["address"]),
        agent=replace(agent, next_within=leaves.number(tree.get("publishedWithin", WITHIN))),
        at=at,
        skew=None if modified is None or wrote is None else wrote - modified,
        every=max(leaves.number(tree.get("publishEvery", EVERY)), 0.0),
        boot=tree.get("boot") is True,
        live=live,
        leases=None if live is None else _leases(tree.get("leasesRead")),
        lost_for=None if live is not None or lost is None else agent.age + max(own - lost, 0.0),
        volumes=None if tree["volumes"] is None else tuple(map(_row, leaves.each_of(tree["volumes"]))),
        listed_at=at - max(leaves.optional_number(tree.get("volumesAge")) or 0.0, 0.0),
        names={given: _addresses(given, each) for given, each in leaves.fields(tree["names"]).items()},
        zone=tree["zone"] is True,
        answers={leaves.given(key): _answers(each) for key, each in leaves.fields(tree["etcd"]).items()},
    )


def _names(value: Any) -> dict[str, str]:
    return {leaves.given(each): leaves.name(address) for each, address in leaves.fields(value).items()}


def _leases(value: Any) -> LeasesRead | None:
    if value is None:
        return None
    found = leaves.fields(value)
    return LeasesRead(cluster_id=int(leaves.given(found["cluster"]), 16), revision=leaves.whole(found["revision"]))


def _addresses(name: str, value: Any) -> tuple[str, ...]:
    """As records of DNS can have them: a name or address that none can have is found here, and not in the view."""
    found = tuple(leaves.given(each) for each in leaves.each_of(value))
    for each in found:
        make_record(name, address_type(each), [each], 1)
    return found


def _answers(value: Any) -> Answers:
    found = from_tree(leaves.fields(value))
    for listed in found.listed or ():
        _whole_id(listed.id)
        for each in (listed.name, *listed.peer_urls, *listed.client_urls):
            leaves.name(each)
        for url in (*listed.peer_urls, *listed.client_urls):
            urlsplit(url)  # ValueError for what is none
    for alarm in found.alarms:
        leaves.name(alarm.name)
    for name, answer in found.members.items():
        leaves.given(name)
        leaves.name(answer.version)
        for number in (answer.id, answer.cluster_id, answer.leader_id):
            _whole_id(number)
        for number in (answer.raft_term, answer.revision, answer.db_size, answer.db_in_use):
            leaves.whole(number)
    members = {
        name: replace(each, errors=tuple(map(leaves.sentence, each.errors))) for name, each in found.members.items()
    }
    return replace(found, members=members)


def _whole_id(number: int) -> None:
    if not 0 <= number < 2**64:
        raise ValueError(f"{number} is no id")


def _row(value: Any) -> dict[str, Any]:
    volume = leaves.fields(value)
    key, _, short = leaves.member(volume["member"]).partition("/")
    return {
        "id": leaves.given(volume["id"]),
        "etcd_cluster": key,
        "member": short,
        "size": leaves.whole(volume["size"]),
        "attached_to": leaves.optional_name(volume["attachedTo"]),
        "state": leaves.name(volume.get("state", "")),  # agents of former versions do not publish it
        "mark": leaves.name(volume["mark"]),
        "epoch": leaves.whole(volume["epoch"]),
        "last_holder": leaves.name(volume["lastHolder"]),
    }
