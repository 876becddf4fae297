"""Whether a volume of the original may become the home of one of our members: pure.

Such a volume has etcd's data and a manifest where the original put them, and no identity of ours. Giving it one means
that etcd is started on its data; so whatever does not fit together is left for a person to sort out first. Adopting
closes the creation of its etcd cluster: were it open, blank siblings could found an empty one beside the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from protokube.members.generation import Generation, is_untouched
from protokube.members.identity import Identity, Nominated, Unreadable, mismatch
from protokube.members.start import Refuse

HOLDER = "adopted"
"""No machine is called so: whoever mounts the volume next takes it over, and raises the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What lies on a mounted volume, as far as it matters here."""

    identity: Identity | Unreadable | None
    logs: dict[str, int]
    """Write-ahead logs by the folder of etcd's data they lie in: `data` for main, `data-events` for events."""
    manifests: dict[str, str]
    """Text by file name, from the folder in which the original keeps the manifest on the volume."""
    database_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a manifest of the original says of its member."""

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
    """It has its identity already."""

    identity: Identity


AdoptDecision = Adopt | Adopted | Refuse


def decide_adopt(
    layout: Layout, tags: Nominated, name: str, generation: Generation | None, mark: str, epoch: int
) -> AdoptDecision:
    """`name` is what etcd calls the member (`etcd-a`); `mark` and `epoch` are the provider's."""
    volume = tags.volume
    match layout.identity:
        case Unreadable(why):
            return Refuse(f"the identity on {volume} cannot be read: {why}", "restore it; it is not adopted over")
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
            "one volume is the home of one member; move the other one away",
        )
    text = layout.manifests.get(manifest_file(tags.etcd_cluster))
    said = read_manifest(text) if text is not None else None
    if said is not None and said.name and said.name != name:
        yield Refuse(
            f"the manifest on {tags.volume} is that of {said.name}, its tags say {name}",
            f"correct the tags of {tags.volume}",
        )


def _warnings(layout: Layout, tags: Nominated) -> Iterator[str]:
    text = layout.manifests.get(manifest_file(tags.etcd_cluster))
    said = read_manifest(text) if text is not None else None
    if said is None:
        yield "there is no manifest on it that can be read: only its tags say which member it is"
    elif not said.secure:
        yield "its peers spoke http, ours speak https: give its members their new peer URLs before the first start"


def read_manifest(text: str) -> Said | None:
    """From the environment of the pod's first container; None if it is not such a pod."""
    try:
        told: Any = yaml.safe_load(text)
        pairs = [(each["name"], str(each.get("value", ""))) for each in told["spec"]["containers"][0]["env"]]
    except (yaml.YAMLError, KeyError, IndexError, TypeError, AttributeError):
        return None
    values = dict(pairs)
    peers = tuple(each for each in values.get("ETCD_INITIAL_CLUSTER", "").split(",") if each)
    return Said(
        name=values.get("ETCD_NAME", ""),
        token=values.get("ETCD_INITIAL_CLUSTER_TOKEN", ""),
        peers=peers,
        secure=not values.get("ETCD_INITIAL_ADVERTISE_PEER_URLS", "https:").startswith("http:"),
    )
