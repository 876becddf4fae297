"""What must hold between two views of a cluster, whatever it lost meanwhile. Pure.

Each broken promise is one sentence. A view may lack what nobody could see, and that breaks no promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protokube.members.start_values import Listed
from protokube.view.seen import SeenCluster


def other_history(before: SeenCluster, after: SeenCluster, key: str) -> Iterator[str]:
    """A cluster that was founded anew answers with another id, and has lost every write."""
    was, now = (
        {each.cluster_id for each in view.members if each.key == key and each.healthy} for view in (before, after)
    )
    if was and now and now != was:
        yield f"the members are of another cluster than before: {', '.join(f'{each:x}' for each in sorted(now))}"


def lower_epochs(before: SeenCluster, after: SeenCluster) -> Iterator[str]:
    """A volume with a lower epoch is an older copy of itself."""
    for disk in after.disks:
        was = before.disk(disk.id)
        if was is not None and disk.epoch < was.epoch:
            yield f"the epoch of {disk.id} went down from {was.epoch} to {disk.epoch}"


def wrong_members(was: Sequence[Listed], now: Sequence[Listed], replaced: Sequence[str]) -> Iterator[str]:
    """The names stay. A member whose volume was replaced has another id; every other one is the same."""
    old, new = {each.name: each for each in was}, {each.name: each for each in now}
    if set(old) != set(new):
        yield f"the members are {', '.join(sorted(new))}, not {', '.join(sorted(old))} as before"
    for name in replaced:
        if name in old and name in new and old[name].id == new[name].id:
            yield f"{name} has its old id on a new volume: it must have joined as a new member"
    changed = sorted(each for each in old if each not in replaced and each in new and new[each] != old[each])
    if changed:
        only = f", though only {', '.join(replaced)} was replaced" if replaced else ", though no volume was replaced"
        yield f"{', '.join(changed)} changed in the member list{only}"


def wrong_takeovers(before: SeenCluster, after: SeenCluster) -> Iterator[str]:
    """Whoever mounts a volume raises its epoch, so that its former holder can be told from it."""
    for disk in after.disks:
        was = before.disk(disk.id)
        moved = (
            was is not None and None not in (was.attached_to, disk.attached_to) and was.attached_to != disk.attached_to
        )
        if was is not None and moved and disk.epoch <= was.epoch:
            yield f"{disk.id} was taken over without raising its epoch: {was.epoch} before, {disk.epoch} after"
