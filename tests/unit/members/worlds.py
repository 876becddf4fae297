"""Builders: the member a of main on vol-a, founded with b and c, seen by an agent that has just mounted the volume."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from protokube.members.generation import Generation
from protokube.members.identity import Identity, Nominated, Unreadable
from protokube.members.older_copy import Figures, Majority, Older
from protokube.members.raftmark import LogPosition
from protokube.members.start_values import Data, Listed, Seen

FOUNDERS = {"a": "vol-a", "b": "vol-b", "c": "vol-c"}


def etcd_name(member: str) -> str:
    return f"etcd-{member}"


def peer_url(member: str) -> str:
    return f"https://etcd-{member}.internal.dev:2380"


def tags(member: str = "a", volume: str = "", *, etcd_cluster: str = "main") -> Nominated:
    return Nominated(cluster="dev", etcd_cluster=etcd_cluster, member=member, volume=volume or f"vol-{member}")


def an_identity(member: str = "a", volume: str = "", *, generation: str = "g1") -> Identity:
    return Identity(
        cluster="dev",
        etcd_cluster="main",
        member=member,
        volume=volume or f"vol-{member}",
        generation=generation,
        epoch=3,
        holder="i-1",
    )


def a_generation(
    *, is_open: bool = False, named: str = "g1", etcd_cluster: str = "main", replacements: dict[str, str] | None = None
) -> Generation:
    return Generation(
        id=named,
        etcd_cluster=etcd_cluster,
        token="token-1",
        founders=dict(FOUNDERS),
        replacements=replacements or {},
        open=is_open,
    )


def a_member(
    member: str, number: int, *, started: bool = True, learner: bool = False, name: str | None = None
) -> Listed:
    """One entry of the list; `name` is the member's own unless the test says otherwise."""
    return Listed(
        id=number,
        name=etcd_name(member) if name is None else name,
        peer_urls=(peer_url(member),),
        client_urls=(f"https://etcd-{member}.internal.dev:2379",) if started else (),
        learner=learner,
    )


B, C = a_member("b", 2), a_member("c", 3)
QUORUM = (a_member("a", 1), B, C)
LATE = (a_member("a", 1, started=False), B, C)
"""The others formed the cluster while founder a was away: it has a name there, and no client URL."""


CLUSTER = 0xC1
POSITION = LogPosition(cluster_id=CLUSTER, member_id=1, term=4, commit=900, last_index=903)
"""Of the log on vol-a: the data of member 1, which QUORUM lists as a."""
OLDER = Older(disk=Figures(epoch=3, term=4, commit=900), recorded=Figures(epoch=5, term=4, commit=1000))
AHEAD = Majority(cluster_id=CLUSTER, term=5, commit=1000)
"""The others have everything that this disk and its records know of."""


def just_mounted(**found: Any) -> Seen:
    """vol-a with data of its own, mounted a moment ago; `found` is what else speaks for or against it."""
    seen = a_mounted(identity=an_identity(), data=Data.PRESENT, generation=a_generation(), members=QUORUM)
    return replace(seen, **{"position": POSITION, **found})


def a_mounted(
    *,
    member: str = "a",
    volume: str = "",
    identity: Identity | Unreadable | None,
    data: Data,
    generation: Generation | None,
    proven_blank: bool = False,
    mark: str | None = "formed",
    siblings: tuple[str, ...] | None = (),
    members: tuple[Listed, ...] | None = None,
    lost: tuple[str, ...] = (),
) -> Seen:
    return Seen(
        tags=tags(member, volume),
        name=etcd_name(member),
        peer_url=peer_url(member),
        identity=identity,
        proven_blank=proven_blank,
        data=data,
        generation=generation,
        mark=mark,
        siblings=siblings,
        members=members,
        lost=lost,
    )


def a_blank(
    *,
    generation: Generation | None,
    volume: str = "vol-a",
    member: str = "a",
    mark: str | None = "",
    siblings: tuple[str, ...] | None = (),
    members: tuple[Listed, ...] | None = None,
    lost: tuple[str, ...] = (),
) -> Seen:
    """A disk that is proven blank and carries no identity."""
    return a_mounted(
        member=member,
        volume=volume,
        identity=None,
        data=Data.MISSING,
        generation=generation,
        proven_blank=True,
        mark=mark,
        siblings=siblings,
        members=members,
        lost=lost,
    )
