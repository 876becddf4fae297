"""Decide whether a volume of the original may be adopted as the disk of one of our members. Pure.

Such a volume has etcd's data and a manifest where the original put them, and no identity file of ours. After adoption
the agent starts etcd on this data, so any contradiction between data, manifest and tags is refused and left to a
person. Adopting also closes the generation record of the etcd cluster: while it is open, blank volumes of the other
members could found an empty cluster beside the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from protokube.members.generation import Generation, is_untouched
from protokube.members.identity import Identity, Nominated, Unreadable, mismatch
from protokube.members.start_values import Refuse

HOLDER = "adopted"
"""Not the name of any machine: the first master that mounts the volume takes it over and raises the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The content of a mounted volume that the decision depends on."""

    identity: Identity | Unreadable | None
    logs: dict[str, int]
    """Number of write-ahead log files by etcd data directory: `data` for main, `data-events` for events."""
    manifests: dict[str, str]
    """Content by file name, from the directory in which the original keeps manifests on the volume."""
    database_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberManifest:
    """The settings of one member in a manifest of the original."""

    name: str = ""
    token: str = ""
    peers: tuple[str, ...] = ()
    secure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Close the record if it is open, then write the identity."""

    identity: Identity
    generation: Generation
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Adopted:
    """The volume already has an identity; nothing to do."""

    identity: Identity


AdoptDecision = Adopt | Adopted | Refuse


def decide_adopt(
    layout: Layout, tags: Nominated, name: str, generation: Generation | None, mark: str, epoch: int
) -> AdoptDecision:
    """`name` is etcd's name of the member (`etcd-a`); `mark` and `epoch` are what the provider has recorded."""
    volume = tags.volume
    match layout.identity:
        case Unreadable(why):
            return Refuse(
                f"the identity on {volume} cannot be read: {why}", "restore it; adopting never overwrites one"
            )
        case Identity() as identity:
            wrong = mismatch(identity, tags)
            return Refuse(wrong, f"correct the tags of {volume}") if wrong else Adopted(identity)
        case None:
            pass
    if not is_untouched(mark):
        return Refuse(
            f"{volume} is marked {mark!r}: it had an identity of ours, and lost it",
            "look for what removed it; an adopted volume was never marked",
        )
    if trouble := next(_troubles(layout, tags, name), None):
        return trouble
    if generation is None:
        return Refuse(f"there is no generation record of {tags.etcd_cluster} to enter it in", "`protokube up` makes it")
    identity = Identity(
        cluster=tags.cluster, etcd_cluster=tags.etcd_cluster, member=tags.member, volume=volume,
        generation=generation.id, epoch=epoch, holder=HOLDER,
    )  # fmt: skip
    return Adopt(identity=identity, generation=generation.closed(), warnings=tuple(_warnings(layout, tags)))


def data_folder(etcd_cluster: str) -> str:
    return "data" if etcd_cluster == "main" else f"data-{etcd_cluster}"


def manifest_file(etcd_cluster: str) -> str:
    return "etcd.manifest" if etcd_cluster == "main" else f"etcd-{etcd_cluster}.manifest"


def _troubles(layout: Layout, tags: Nominated, name: str) -> Iterator[Refuse]:
    ours = data_folder(tags.etcd_cluster)
    others = sorted(folder for folder, count in layout.logs.items() if count and folder != ours)
    if not layout.logs.get(ours):
        saw = f"; it has data of {', '.join(others)}" if others else ""
        yield Refuse(f"{tags.volume} has no data of {tags.etcd_cluster} to adopt{saw}", "check its tags")
    elif others:
        yield Refuse(
            f"{tags.volume} has data of several etcd clusters: {', '.join([ours, *others])}",
            "one volume holds the data of one member; move the other data away",
        )
    text = layout.manifests.get(manifest_file(tags.etcd_cluster))
    manifest = read_manifest(text) if text is not None else None
    if manifest is not None and manifest.name and manifest.name != name:
        yield Refuse(
            f"the manifest on {tags.volume} is that of {manifest.name}, its tags say {name}",
            f"correct the tags of {tags.volume}",
        )


def _warnings(layout: Layout, tags: Nominated) -> Iterator[str]:
    text = layout.manifests.get(manifest_file(tags.etcd_cluster))
    manifest = read_manifest(text) if text is not None else None
    if manifest is None:
        yield "no readable manifest is on it: only its tags say which member it is"
    elif not manifest.secure:
        yield "its peers spoke http, ours speak https: give its members their new peer URLs before the first start"


def read_manifest(text: str) -> MemberManifest | None:
    """Read the environment of the pod's first container; None if the text is not such a pod."""
    try:
        document: Any = yaml.safe_load(text)
        pairs = [(each["name"], str(each.get("value", ""))) for each in document["spec"]["containers"][0]["env"]]
    except (yaml.YAMLError, KeyError, IndexError, TypeError, AttributeError):
        return None
    values = dict(pairs)
    peers = tuple(each for each in values.get("ETCD_INITIAL_CLUSTER", "").split(",") if each)
    return MemberManifest(
        name=values.get("ETCD_NAME", ""),
        token=values.get("ETCD_INITIAL_CLUSTER_TOKEN", ""),
        peers=peers,
        secure=not values.get("ETCD_INITIAL_ADVERTISE_PEER_URLS", "https:").startswith("http:"),
    )
