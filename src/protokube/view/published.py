"""One record in the state store: what the agent of one master published, and when. Pure.

Its age goes by what that master took for the time: a store has no clock that all of its readers share. A clock that is
wrong makes a report look older or newer than it is; one from the future counts as new.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from protokube.members.survey.answers import Answers, from_tree
from protokube.view.reports import read_agent
from protokube.view.values import AgentView

WITHIN = 360.0
"""Seconds within which the next report is published, for one that does not say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What one master published last."""

    machine: str
    """Its id."""
    name: str
    group: str
    address: str
    agent: AgentView
    live: Mapping[str, str] | None = None
    """Addresses of the masters with a live lease, by id, as it saw them; None if it saw no quorum."""
    lost_for: float | None = None
    """Seconds for which it has seen no quorum by now; None if it saw one."""
    volumes: tuple[Mapping[str, Any], ...] | None = None
    """The complete list, as rows of `view.parts`; None if its provider did not answer."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    zone: bool = True
    """The names are in a DNS zone; otherwise each master has its own hosts file."""
    answers: Mapping[str, Answers] = field(default_factory=dict)
    """By etcd cluster, what the members answered to this master."""

    @property
    def at(self) -> float:
        return self.agent.at

    @property
    def stale(self) -> bool:
        return self.agent.stale


def read_published(data: bytes, now: float) -> Published | None:
    """None if it is no such record, or of a version that this one cannot read."""
    try:
        tree = json.loads(data)
        machine = tree["machine"]
        at, lost = float(tree["at"]), tree["withoutQuorumSince"]
        agent = read_agent(str(machine["name"]), tree, age=max(now - at, 0.0))
        return Published(
            machine=str(machine["id"]),
            name=str(machine["name"]),
            group=str(machine["group"]),
            address=str(machine["address"]),
            agent=replace(agent, next_within=float(tree.get("publishedWithin", WITHIN))),
            live=None if tree["live"] is None else {str(id_): str(each) for id_, each in tree["live"].items()},
            lost_for=None if tree["live"] is not None or lost is None else agent.age + max(at - float(lost), 0.0),
            volumes=None if tree["volumes"] is None else tuple(_row(each) for each in tree["volumes"]),
            names={str(name): tuple(map(str, each)) for name, each in tree["names"].items()},
            zone=tree["zone"] is True,
            answers={str(key): from_tree(each) for key, each in tree["etcd"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _row(volume: Mapping[str, Any]) -> dict[str, Any]:
    key, _, short = str(volume["member"]).partition("/")
    return {
        "id": str(volume["id"]),
        "etcd_cluster": key,
        "member": short,
        "size": int(volume["size"]),
        "attached_to": volume["attachedTo"],
        "state": str(volume.get("state", "")),  # agents of former versions do not publish it
        "mark": str(volume["mark"]),
        "epoch": int(volume["epoch"]),
        "last_holder": str(volume["lastHolder"]),
    }
