"""The user's own add-ons: `addons` of the spec, each a manifest said in place or the place of one.

What cannot be applied is told before anything is: a manifest without a kind or a name would stop the agent on every
master, long after the person who wrote it went home.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from protokube.addons.value import Addon, Tree
from protokube.errors import InvalidRequest
from protokube.spec.plain import plain_documents

BUILT_IN = ("rbac", "cluster-dns")
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""It becomes the value of a label."""

Read = Callable[[str], str]


def own_addons(told: Sequence[Mapping[str, Any]], read: Read) -> tuple[Addon, ...]:
    """In the user's order; `read` gives the text behind a URL."""
    found: dict[str, Addon] = {}
    for index, each in enumerate(told):
        addon = _addon(each, f"addons[{index}]", read)
        if addon.name in found or addon.name in BUILT_IN:
            raise InvalidRequest(
                f"addons[{index}]: there is an add-on {addon.name!r} already", hint="give it a `name` of its own"
            )
        found[addon.name] = addon
    return tuple(found.values())


def _addon(told: Mapping[str, Any], place: str, read: Read) -> Addon:
    if unknown := sorted(set(told) - {"name", "manifest"}):
        raise InvalidRequest(f"{place}: {', '.join(unknown)} means nothing here", want="name, manifest")
    manifest = told.get("manifest")
    if not isinstance(manifest, str) or not manifest.strip():
        raise InvalidRequest(f"{place} says no manifest", want="`manifest`: its text, or where it lies")
    inline = "\n" in manifest.strip()
    name = str(told.get("name") or (f"own-{place[7:-1]}" if inline else _base(manifest)))
    if not NAME.fullmatch(name):
        raise InvalidRequest(
            f"{place}: {name!r} is no name for an add-on", want="small letters, digits, - and ., at most 63",
            hint="say `name`",
        )  # fmt: skip
    text = manifest if inline else read(manifest)
    return Addon(name=name, objects=tuple(_objects(text, f"{place} ({name})")))


def _base(url: str) -> str:
    return PurePosixPath(url).name.rpartition(".")[0].lower() or PurePosixPath(url).name.lower()


def _objects(text: str, place: str) -> list[Tree]:
    found: list[Tree] = []
    for document in plain_documents([(place, text)]):
        items = document.get("items") if document.get("kind") == "List" else None
        parts = items if isinstance(items, list) else [document]
        found += [_checked(each, place) for each in parts if each]  # between two separators there may be nothing
    return found


def _checked(tree: Any, place: str) -> Tree:
    match tree:
        case {"apiVersion": str(), "kind": "Addons"}:
            raise InvalidRequest(
                f"{place} is a channel of the original: a list of other manifests", hint="name the manifests themselves"
            )
        case {"apiVersion": str(), "kind": str(), "metadata": {"name": str(), **metadata}} if isinstance(
            metadata.get("labels") or {}, dict
        ):
            return dict(tree)
        case _:
            raise InvalidRequest(
                f"{place}: an object cannot be applied", saw=str(tree)[:80], want="apiVersion, kind and metadata.name"
            )
