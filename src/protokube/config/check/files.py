"""The user's own files: can each be written, and does it meet another one, or one of ours?

A file that both of us write changes hands in every round, for ever; one that names a pod of ours is set aside by the
agent and written again as often. `ourplaces` has what is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protokube.config import files
from protokube.config.check.groups import check_roles
from protokube.config.check.ourplaces import MANIFESTS, OurPlaces, our_places, why_not
from protokube.config.draft import Draft
from protokube.errors import InvalidSpec
from protokube.spec.decode import Tree
from protokube.spec.machines import ROLES
from protokube.spec.parse import GROUPS
from protokube.spec.tree import Mapping, read_documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file, with the roles of the machines it is for."""

    name: str
    told: Draft
    place: str
    roles: frozenset[str]

    def problem(self, message: str, hint: str = "") -> None:
        self.told.ledger.problem(self.told.at("path"), message, hint, self.told.path)


def check_files(cluster: Draft, root: Draft, rendered: dict[str, Tree]) -> None:
    ours = our_places(cluster.tree, rendered)
    everybodys = _assets(cluster, ROLES)
    for asset in everybodys:
        _check(asset, ours)
        if "Master" not in asset.roles:
            _nowhere(asset, asset.told.get("roles"))
    everybodys = [each for each in everybodys if not why_not(each.place, ours)]  # what can lie nowhere meets nobody
    _apart(everybodys, everybodys)
    for name, group in root.each(GROUPS):
        own = _assets(group, (group.get("role"),))
        for asset in own:
            _check(asset, ours)
            if not asset.roles:
                message = f"no machine gets it: it is for {', '.join(asset.told.get('roles'))}"
                asset.told.ledger.warn(asset.told.path, f"{message}, and those of {name} are {group.get('role')}s")
            elif asset.roles != {"Master"}:
                _nowhere(asset, [group.get("role")])
        own = [each for each in own if not why_not(each.place, ours)]
        _apart(own, own)
        # with the same place as one of the cluster's, the group's stands instead of it, as in the original
        others = [each for each in everybodys if each.place not in {asset.place for asset in own}]
        _apart(own, others)
        _apart(others, own)


def _assets(draft: Draft, roles: Sequence[str]) -> list[Asset]:
    return [
        Asset(
            name=name,
            told=told,
            place=files.place(name, told.tree),
            roles=frozenset(role for role in roles if files.is_for(told.tree, role)),
        )
        for name, told in draft.each("fileAssets")
    ]


def _check(asset: Asset, ours: OurPlaces) -> None:
    told = asset.told
    check_roles(told)
    if found := why_not(asset.place, ours):
        reason, hint = found
        asset.problem(f"{asset.place!r} {reason}", hint)
    try:
        files.mode(told.tree)
    except ValueError as error:
        hint = "three octal digits, such as 0440 or 0644; its owner has to be able to read it"
        told.ledger.problem(told.at("mode"), str(error), hint)
    if not told.has("content"):
        told.ledger.problem(told.at("content"), "is not given", "what the file shall hold", told.path)
        return
    try:
        content = files.content(told.tree)
    except ValueError:
        hint = "encode it with `base64`, or leave `isBase64` out"
        told.ledger.problem(told.at("content"), "is not base64, though `isBase64` says so", hint, told.path)
        return
    folder, _, _ = asset.place.rpartition("/")
    if folder == MANIFESTS and (pod := _pod(content)) in ours.pods:
        message = f"names the pod {pod}, which protokube runs itself"
        told.ledger.problem(told.at("content"), message, "give the pod another name", told.path)


def _pod(content: bytes) -> str:
    """`NAMESPACE/NAME`; "" for what is no pod to us: the agent says so where it meets it."""
    try:
        documents = read_documents(content.decode(), "")
    except (UnicodeDecodeError, InvalidSpec):
        return ""
    metadata = documents[0].fields.get("metadata") if documents else None
    return f"{metadata.text('namespace')}/{metadata.text('name')}" if isinstance(metadata, Mapping) else ""


def _nowhere(asset: Asset, roles: Sequence[str]) -> None:
    message = f"no machine gets it yet: masters are brought up, machines of role {' and '.join(roles)} are not"
    asset.told.ledger.warn(asset.told.path, message)


def _apart(assets: Sequence[Asset], others: Sequence[Asset]) -> None:
    """No two of one machine have one place, and none lies in another as if that were a folder."""
    by_place: dict[str, list[Asset]] = {}
    for each in others:
        by_place.setdefault(each.place, []).append(each)
    met: set[frozenset[str]] = set()
    for asset in reversed(assets):
        parts = asset.place.split("/")
        for end in range(2, len(parts) + 1):
            for other in by_place.get("/".join(parts[:end]), ()):
                pair = frozenset((asset.told.path, other.told.path))
                if asset.roles & other.roles and len(pair) == 2 and pair not in met:
                    met.add(pair)
                    _meet(asset, other)


def _meet(asset: Asset, other: Asset) -> None:
    if asset.place == other.place:
        asset.problem(f"{asset.place!r} is the place of {other.name!r} too", "a machine can have one of them")
    else:
        asset.problem(f"{asset.place!r} lies in {other.place!r}, which is the file {other.name!r}")
