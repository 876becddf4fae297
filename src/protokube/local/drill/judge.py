"""Check a recorded drill against its promises, and return a verdict. Pure.

`broken` lists each broken promise in one sentence; `missing` lists what did not happen in time. A drill is good if both
are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protokube.local.drill.values import ApiWrites, Timeline, Verdict
from protokube.local.drill.writer import key_of, lost, regressions, unexplained
from protokube.members.survey.listing import list_bytes
from protokube.view import promises
from protokube.view.cluster import ClusterView

ONE_ROUND = 12.0
"""Seconds within which a host that wakes up after a takeover must have stopped its etcd."""
SHOWN = 5


def judge(timeline: Timeline) -> Verdict:
    log, gap = timeline.log, timeline.log.longest_gap
    lists = (list_bytes(timeline.before.listed(timeline.key)), list_bytes(timeline.after.listed(timeline.key)))
    checks = (_writes, _history, _gap, _membership, _homes, _hosts, _old_holder, _limits, _api)
    found = timeline.found or {}
    return Verdict(
        drill=timeline.drill,
        target=timeline.target,
        broken=tuple(sentence for check in checks for sentence in check(timeline)),
        missing=(*timeline.missing, *_unproven(timeline)),
        steps=timeline.steps,
        acknowledged=len(log.acknowledged),
        unanswered=len(log.writes) - len(log.acknowledged),
        there=sum(key_of(log.prefix, each.number) in found for each in log.acknowledged),
        longest_gap=gap.seconds,
        gap_began=gap.began - timeline.began,
        same_list=lists[0] == lists[1],
        replaced=timeline.promises.replaced,
        lists=lists,
        old=timeline.old,
        api=_api_writes(timeline),
        lacks=timeline.after.lacks if timeline.missing else (),
    )


def _unproven(timeline: Timeline) -> Iterator[str]:
    if timeline.found is None:
        yield "the writes to be read back"
    if timeline.api_log is not None and timeline.api_found is None:
        yield "the writes through the Kubernetes API to be read back"
    if timeline.old is not None and not timeline.old.ran:
        yield f"etcd to be still there on {timeline.old.host} when it woke up; without it, the drill proves nothing"


def _writes(timeline: Timeline) -> Iterator[str]:
    if not timeline.log.acknowledged:
        yield "not one write was acknowledged"
    if timeline.found is None:
        return
    if gone := lost(timeline.log, timeline.found):
        yield f"{len(gone)} acknowledged writes are lost: {_some(gone)}"
    if strange := unexplained(timeline.log, timeline.found):
        yield f"{len(strange)} keys are there that were never written: {_some(strange)}"


def _history(timeline: Timeline) -> Iterator[str]:
    if numbers := regressions(timeline.log):
        yield f"the revision went back at write {_some(numbers)}: a second history answered"
    yield from promises.other_history(timeline.before, timeline.after, timeline.key)


def _gap(timeline: Timeline) -> Iterator[str]:
    limit, gap = timeline.promises.longest_gap, timeline.log.longest_gap
    if limit is not None and gap.seconds > limit:
        yield f"no write was acknowledged for {gap.seconds:.1f} s, though a quorum was there; the limit is {limit:g} s"


def _membership(timeline: Timeline) -> Iterator[str]:
    """Checked only when the cluster is ready again: before that, a member list may be in transition."""
    if not timeline.after.ready:
        return
    for key in dict.fromkeys(each.key for each in timeline.before.members):
        before, after = timeline.before.listed(key), timeline.after.listed(key)
        if key == timeline.key and not timeline.promises.same_list:
            yield from promises.wrong_members(
                before, after, (replaced,) if (replaced := timeline.promises.replaced) else ()
            )
        elif list_bytes(before) != list_bytes(after):
            yield f"the member list of {key} is not the same as before"


def _homes(timeline: Timeline) -> Iterator[str]:
    before, after = timeline.before, timeline.after
    yield from promises.lower_epochs(before, after)
    for disk in after.disks:
        was = before.disk(disk.id)
        moved = was is not None and (disk.attached_to, disk.epoch) != (was.attached_to, was.epoch)
        if timeline.promises.same_homes and moved:
            yield f"{disk.id} was taken over by {disk.attached_to}, though no host was dead"
    for volume in timeline.promises.taken_over:
        yield from _taken_over(before, after, volume)


def _taken_over(before: ClusterView, after: ClusterView, volume: str) -> Iterator[str]:
    was, now = before.disk(volume), after.disk(volume)
    if was is None or not after.ready:
        return
    if now is None:
        yield f"{volume} is not there any more"
    elif now.attached_to == was.attached_to:
        yield f"{volume} is still attached to {was.attached_to}"
    elif now.epoch <= was.epoch:
        yield f"{volume} was taken over without raising its epoch: {was.epoch} before, {now.epoch} after"


def _hosts(timeline: Timeline) -> Iterator[str]:
    """Host names and addresses must not be reused: a client with a stale record would trust the new host."""
    gone = [each for each in timeline.before.hosts if each.name in timeline.promises.gone]
    living = [each for each in timeline.after.hosts if each.alive and not each.dead]
    for host in gone:
        if any(each.name == host.name for each in living):
            yield f"{host.name} came back under its old name"
        if any(each.address == host.address for each in living):
            yield f"the address {host.address} was given to a new host"


def _old_holder(timeline: Timeline) -> Iterator[str]:
    old = timeline.old
    if old is None:
        return
    if old.acknowledged:
        yield f"{old.host} acknowledged {len(old.acknowledged)} writes after its volume was taken over"
    if old.landed:
        yield f"{len(old.landed)} writes of {old.host} are in the cluster, made after its volume was taken over"
    if old.gone_after is None or old.gone_after > ONE_ROUND:
        took = "for good" if old.gone_after is None else f"for {old.gone_after:.1f} s"
        yield f"etcd went on running on {old.host} {took}; it has to be gone within {ONE_ROUND:g} s"


def _limits(timeline: Timeline) -> Iterator[str]:
    for each in timeline.reached:
        limit = timeline.promises.limits.get(each.kind)
        if limit is not None and each.at > limit:
            yield f"it took {each.at:.1f} s until the names of the API were right; the limit is {limit:g} s"


def _api(timeline: Timeline) -> Iterator[str]:
    """Users only see the API: it must answer again, and must have kept every acknowledged write."""
    log, found = timeline.api_log, timeline.api_found
    if log is None:
        return
    if not any(each.answered > timeline.began for each in log.acknowledged):
        yield "the Kubernetes API acknowledged no write after the first fault"
    if found is not None and (gone := lost(log, found)):
        yield f"{len(gone)} acknowledged writes through the Kubernetes API are lost: {_some(gone)}"
    if numbers := regressions(log):
        yield f"through the Kubernetes API, the revision went back at write {_some(numbers)}"


def _api_writes(timeline: Timeline) -> ApiWrites | None:
    log, found = timeline.api_log, timeline.api_found or {}
    if log is None:
        return None
    return ApiWrites(
        acknowledged=len(log.acknowledged),
        unanswered=len(log.writes) - len(log.acknowledged),
        there=sum(key_of(log.prefix, each.number) in found for each in log.acknowledged),
        longest_gap=log.longest_gap.seconds,
    )


def _some(things: Sequence[object]) -> str:
    more = f" and {len(things) - SHOWN} more" if len(things) > SHOWN else ""
    return ", ".join(str(each) for each in things[:SHOWN]) + more
