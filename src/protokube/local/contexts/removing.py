"""Plan the removal of a cluster's contexts from a user's kubeconfig files.

All our entries for the cluster go, also those that an entry of somebody else hides. If ours is the current context, or
the current one uses our cluster, the former context returns, unless it is gone, too: a current context that does not
exist would make every kubectl fail, so then there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from protokube.local.contexts.values import (
    BODY,
    CLUSTERS,
    CONTEXTS,
    USERS,
    Current,
    Drop,
    Edit,
    Kubeconfig,
    Mark,
    Owner,
    Put,
    current_context,
    effective,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPlan:
    edits: tuple[Edit, ...]
    """In the order in which files are to be written: a context is current no more before it goes."""
    contexts: tuple[str, ...]
    """The contexts that go."""
    restored: str = ""
    """The former context, if it is current again."""


def plan_removal(chain: Sequence[Kubeconfig], owner: Owner) -> RemovalPlan:
    drops = [
        Drop(path=file.path, section=section, name=entry.name)
        for file in chain
        for section in BODY
        for entry in file.of(section)
        if entry.mark and entry.mark.owner == owner
    ]
    gone = {
        entry.name: entry.mark
        for file in reversed(chain)
        for entry in file.of(CONTEXTS)
        if entry.mark and entry.mark.owner == owner
    }
    after = [_without(file, owner) for file in chain]
    usable = _usable(chain, after)
    before = current_context(chain)
    restored, bad = "", set(gone) - usable
    if before not in usable and (before in gone or before in effective(after, CONTEXTS)):
        former = _former(gone, before)
        restored = former if former in usable else ""
        bad.add(before)
    splices = [
        Put(path=path, section=CONTEXTS, name=name, mark=replace(entry.mark, former=_former(gone, entry.mark.former)))
        for name, (path, entry) in effective(after, CONTEXTS).items()
        if entry.mark and entry.mark.former in gone
    ]
    return RemovalPlan(
        edits=(*_restore(chain, bad, restored), *splices, *drops), contexts=tuple(gone), restored=restored
    )


def _without(file: Kubeconfig, owner: Owner) -> Kubeconfig:
    left = {
        section: tuple(entry for entry in entries if not (entry.mark and entry.mark.owner == owner))
        for section, entries in file.entries.items()
    }
    return replace(file, entries=left)


def _usable(before: Sequence[Kubeconfig], after: Sequence[Kubeconfig]) -> set[str]:
    """The contexts that exist afterwards, and use nothing that we take away."""
    lost = {section: set(effective(before, section)) - set(effective(after, section)) for section in (CLUSTERS, USERS)}
    return {
        name
        for name, (_, entry) in effective(after, CONTEXTS).items()
        if entry.body.get("cluster") not in lost[CLUSTERS] and entry.body.get("user") not in lost[USERS]
    }


def _former(gone: Mapping[str, Mark], name: str) -> str:
    """What was current before this context; if it is not ours and uses our cluster, before any of ours."""
    former = gone[name].former if name in gone else next((mark.former for mark in gone.values()), "")
    for _ in gone:
        former = gone[former].former if former in gone else former
    return "" if former in gone else former


def _restore(chain: Sequence[Kubeconfig], bad: set[str], former: str) -> Iterator[Current]:
    """Clear the current context wherever it is bad, also where another file hides it for now.

    Set the former one only if that alone does not bring it back.
    """
    cleared = [replace(file, current="") if file.current in bad else file for file in chain]
    set_in = next((file.path for file in chain if file.current), "")
    for file, clear in zip(chain, cleared, strict=True):
        if file.path == set_in and former and current_context(cleared) != former:
            yield Current(path=file.path, name=former)
        elif clear.current != file.current:
            yield Current(path=file.path, name="")
