"""Merge a context into somebody's kubeconfig files, and take contexts out: read, plan, and swap.

Reading and writing happen with that person's rights (`child`), planning here. Between the two another program may
write: then the files are read and planned anew. If nothing is to change, nothing is written or locked.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from protokube import fast_yaml
from protokube.errors import TryLater
from protokube.local.contexts import document, files
from protokube.local.contexts.child import as_person
from protokube.local.contexts.merging import Access, MergePlan, RefreshPlan, plan_merge, plan_refresh
from protokube.local.contexts.person import Person
from protokube.local.contexts.removing import RemovalPlan, plan_removal
from protokube.local.contexts.values import Current, Edit, Kubeconfig, Mark, Owner

TRIES = 30
"""Each that fails is one in which another writer was done."""
MACHINE_ID = Path("/etc/machine-id")
Plan = TypeVar("Plan", MergePlan, RefreshPlan, RemovalPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whose kubeconfig it is, and its files in kubectl's order."""

    person: Person
    paths: tuple[str, ...]


def merge(place: Place, access: Access, *, switch: bool, patience: float = files.PATIENCE) -> tuple[MergePlan, bool]:
    """The plan that was carried out, and whether anything was written. Refused, TryLater: nothing was."""
    return _carry_out(place, partial(plan_merge, access=access, switch=switch), patience, current_last=True)


def refresh(place: Place, access: Access, *, patience: float = files.PATIENCE) -> bool:
    """Bring the cluster's address and CA up to date where it is merged; return whether that changed anything."""
    return _carry_out(place, partial(plan_refresh, access=access), patience, current_last=True)[1]


def remove(place: Place, owner: Owner, *, patience: float = files.PATIENCE) -> RemovalPlan:
    """Take all entries of a cluster out."""
    return _carry_out(place, partial(plan_removal, owner=owner), patience, current_last=False)[0]


def access_from(kubeconfig: str, cluster: str, mark: Mark) -> Access:
    """From a kubeconfig of our own, with everything in it (`manifests.kubeconfig.by_content`)."""
    tree: Any = fast_yaml.load(kubeconfig)
    where, who = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
    return Access(
        cluster=cluster, mark=mark, server=where["server"], ca=where["certificate-authority-data"],
        certificate=who["client-certificate-data"], key=who["client-key-data"],
    )  # fmt: skip


def owner_of(state: str) -> Owner:
    """The cluster with this state, on this machine."""
    name = os.uname().nodename
    with suppress(OSError):
        name = MACHINE_ID.read_text().strip() or name
    return Owner(machine=hashlib.sha256(f"protokube {name}".encode()).hexdigest()[:12], state=state)


def _carry_out(
    place: Place, plan: Callable[[Sequence[Kubeconfig]], Plan], patience: float, *, current_last: bool
) -> tuple[Plan, bool]:
    for _ in range(TRIES):
        found = _read(place)
        planned = plan([document.read(path, data) for path, data in found.items()])
        changes = changes_of(found, planned.edits, current_last=current_last)
        if not changes:
            return planned, False
        if as_person(place.person, partial(files.swap, changes, patience)):
            return planned, True
    raise TryLater("your kubeconfig keeps changing", saw=", ".join(place.paths))


def _read(place: Place) -> dict[str, bytes | None]:
    reply: dict[str, str | None] = as_person(place.person, lambda: _as_text(files.read_all(place.paths)))
    return {path: None if text is None else b64decode(text) for path, text in reply.items()}


def _as_text(found: Mapping[str, bytes | None]) -> dict[str, str | None]:
    return {path: None if data is None else b64encode(data).decode() for path, data in found.items()}


def changes_of(found: Mapping[str, bytes | None], edits: Sequence[Edit], *, current_last: bool) -> list[files.Change]:
    """One change for each file that has edits: files that switch last in a merge, and first in a removal."""
    switching = {each.path for each in edits if isinstance(each, Current)}
    order = sorted({each.path: None for each in edits}, key=lambda path: (path in switching) == current_last)
    changes = []
    for path in order:
        after = document.edited(path, found[path], [each for each in edits if each.path == path])
        changes.append(files.Change(path=path, before=found[path], after=after))
    return [each for each in changes if each.before != each.after]
