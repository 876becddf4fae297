"""The user's own files: whether each can be written, and does not conflict with another one or with protokube's.

A file that both the user and protokube write would be overwritten in every round, for ever. A manifest with the name of
one of protokube's pods would be set aside by the agent and written again as often. `ourplaces` lists protokube's files.
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
    draft: Draft
    place: str
    roles: frozenset[str]

    def problem(self, message: str, hint: str = "") -> None:
        self.draft.ledger.problem(self.draft.at("path"), message, hint, self.draft.path)


def check_files(cluster: Draft, root: Draft, rendered: dict[str, Tree]) -> None:
    ours, reached = our_places(cluster.tree, rendered), _reached(cluster.get("cloud"))
    shared = _assets(cluster, ROLES)
    for asset in shared:
        _check(asset, ours)
        if not asset.roles & reached.keys():
            _nowhere(asset, asset.draft.get("roles"), reached)
    shared = [each for each in shared if not why_not(each.place, ours)]  # already reported
    _apart(shared, shared)
    for name, group in root.each(GROUPS):
        own = _assets(group, (group.get("role"),))
        for asset in own:
            _check(asset, ours)
            if not asset.roles:
                message = f"no machine gets it: it is for {', '.join(asset.draft.get('roles'))}"
                asset.draft.ledger.warn(asset.draft.path, f"{message}, and those of {name} are {group.get('role')}s")
            elif not asset.roles & reached.keys():
                _nowhere(asset, [group.get("role")], reached)
        own = [each for each in own if not why_not(each.place, ours)]
        _apart(own, own)
        # a group's file replaces a cluster's file with the same path, as in the original
        others = [each for each in shared if each.place not in {asset.place for asset in own}]
        _apart(own, others)
        _apart(others, own)


def _assets(holder: Draft, roles: Sequence[str]) -> list[Asset]:
    return [
        Asset(
            name=name,
            draft=draft,
            place=files.place(name, draft.tree),
            roles=frozenset(role for role in roles if files.is_for(draft.tree, role)),
        )
        for name, draft in holder.each("fileAssets")
    ]


def _check(asset: Asset, ours: OurPlaces) -> None:
    draft = asset.draft
    check_roles(draft)
    if found := why_not(asset.place, ours):
        reason, hint = found
        asset.problem(f"{asset.place!r} {reason}", hint)
    try:
        files.mode(draft.tree)
    except ValueError as error:
        hint = "three octal digits, such as 0440 or 0644; the owner has to be able to read the file"
        draft.ledger.problem(draft.at("mode"), str(error), hint)
    if not draft.has("content"):
        draft.ledger.problem(draft.at("content"), "is not given", "the content of the file", draft.path)
        return
    try:
        content = files.content(draft.tree)
    except ValueError:
        hint = "encode it with `base64`, or leave `isBase64` out"
        draft.ledger.problem(draft.at("content"), "is not base64, but `isBase64` is set", hint, draft.path)
        return
    folder, _, _ = asset.place.rpartition("/")
    if folder == MANIFESTS and (pod := _pod(content)) in ours.pods:
        message = f"has the name of the pod {pod}, which protokube runs itself"
        draft.ledger.problem(draft.at("content"), message, "give the pod another name", draft.path)


def _pod(content: bytes) -> str:
    """`NAMESPACE/NAME`; "" if it cannot be read as a pod, which the agent reports when it finds the file."""
    try:
        documents = read_documents(content.decode(), "")
    except (UnicodeDecodeError, InvalidSpec):
        return ""
    metadata = documents[0].fields.get("metadata") if documents else None
    return f"{metadata.text('namespace')}/{metadata.text('name')}" if isinstance(metadata, Mapping) else ""


def _reached(cloud: str) -> dict[str, str]:
    """The roles whose machines get files, and what their machines are called."""
    return {"Master": "masters"} | ({"Node": "nodes"} if cloud == "metal" else {})


def _nowhere(asset: Asset, roles: Sequence[str], reached: dict[str, str]) -> None:
    who = " and ".join(reached.values())
    message = f"no machine gets it yet: only {who} are brought up, not machines of role {' and '.join(roles)}"
    asset.draft.ledger.warn(asset.draft.path, message)


def _apart(assets: Sequence[Asset], others: Sequence[Asset]) -> None:
    """No two files of one machine have the same path, and none has a path below another file."""
    by_place: dict[str, list[Asset]] = {}
    for each in others:
        by_place.setdefault(each.place, []).append(each)
    met: set[frozenset[str]] = set()
    for asset in reversed(assets):
        parts = asset.place.split("/")
        for end in range(2, len(parts) + 1):
            for other in by_place.get("/".join(parts[:end]), ()):
                pair = frozenset((asset.draft.path, other.draft.path))
                if asset.roles & other.roles and len(pair) == 2 and pair not in met:
                    met.add(pair)
                    _meet(asset, other)


def _meet(asset: Asset, other: Asset) -> None:
    if asset.place == other.place:
        asset.problem(f"{asset.place!r} is also the path of {other.name!r}", "give one of them another path")
    else:
        asset.problem(f"{asset.place!r} is below {other.place!r}, which is the file {other.name!r}")
