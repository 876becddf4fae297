"""Decide how to start etcd on a mounted volume: one table, one function.

Two wiped disks of three must never form a second cluster beside the survivor: real etcd does that every time when its
blank members are started `new` a few seconds before the survivor is back. So `new` is for founders of an open
generation only, `existing` only right after our own remove and add, and a blank disk alone never justifies either.
"""

from __future__ import annotations

from dataclasses import replace

from protokube.members.generation import is_open, is_unformed, is_untouched
from protokube.members.identity import Identity, Unreadable, mismatch
from protokube.members.older_copy import Older, why_not_rejoin
from protokube.members.raftmark import LogPosition
from protokube.members.removal import Later, Never, Removed
from protokube.members.removal import decide as decide_removed
from protokube.members.start_values import Data, Decision, Join, Kind, Listed, Refuse, Seen, Start, Wait


def decide_start(seen: Seen) -> Decision:
    """One row of the table for every combination; what no row allows is refused."""
    name = f"{seen.tags.etcd_cluster}/{seen.tags.member}"
    if seen.generation is not None and seen.generation.etcd_cluster != seen.tags.etcd_cluster:
        seen = replace(seen, generation=None)  # a record of another etcd cluster does not apply
    match seen.identity:
        case Unreadable(why):
            return Refuse(
                f"the identity on {seen.tags.volume} cannot be read: {why}", "restore it, or replace the volume"
            )
        case Identity() as identity if wrong := mismatch(identity, seen.tags):
            is_copy = identity.volume != seen.tags.volume
            kind = Kind.CLONE if is_copy else Kind.OTHER
            return Refuse(wrong, f"correct the tags of {seen.tags.volume}, or detach it", kind)
        case Identity(generation=old) if seen.generation is not None and old != seen.generation.id:
            # left behind by a restore: two such members would bring the old cluster back beside the new one
            return Refuse(
                f"{seen.tags.volume} is of generation {old!r}, {name} is of {seen.generation.id!r} now",
                "it holds the data of a former cluster; replace the volume",
            )
        case Identity():
            return _ours(seen, name)
        case None:
            return _no_identity(seen, name)


def _ours(seen: Seen, name: str) -> Decision:
    match seen.data:
        case Data.PRESENT:
            return _served(seen, name) if seen.verified else _with_data(seen, name)
        case Data.CORRUPT:
            volume = seen.tags.volume
            return Refuse(
                f"etcd says the data of {name} is corrupt" + (f": {seen.corrupt}" if seen.corrupt else ""),
                f"restore {volume} from a newer copy, or delete it: the other members then make {name} anew",
            )
        case Data.ORIGINAL:
            return Refuse(
                f"{name} has an identity of ours and data of the original", "a person must say which is right"
            )
        case Data.MISSING:
            pass
    if may_found(seen):
        return Start(fresh=True)  # a crash between writing the identity and the first start loses nothing
    if not seen.members:
        return Refuse(
            f"the data of {name} is gone, and the other members have no quorum",
            "bring the others back; a command that rebuilds the cluster without them is not built yet: docs/limits.md",
        )
    return _alone(seen, name) or _join(seen, name, write_identity=False, move_aside=True)


def _served(seen: Seen, name: str) -> Decision:
    """A disk that was checked before keeps running, unless a majority reports that it is no longer a member."""
    if seen.position is None or seen.majority is None or seen.majority.cluster_id != seen.position.cluster_id:
        return Start(fresh=False)
    return _not_listed(seen, seen.position, name) or Start(fresh=False)


def _with_data(seen: Seen, name: str) -> Decision:
    """A disk that was just mounted: check first which disk it is, then how far its data has progressed."""
    volume, position = seen.tags.volume, seen.position
    if position is None:
        return Refuse(
            f"etcd's log on {volume} cannot be read: {seen.unreadable_log}",
            f"restore {volume} from a newer copy, or delete it: the other members then make {name} anew",
        )
    if stranger := _not_listed(seen, position, name):
        return stranger
    if seen.answers_elsewhere:
        return Refuse(
            f"member {position.member_id:x} of {name} runs elsewhere: {volume} is a copy of its disk",
            f"detach {volume}; the running member was left alone",
            Kind.CLONE,
        )
    if seen.siblings and seen.generation is None and not seen.members:
        several = ", ".join((volume, *seen.siblings))
        return Wait(
            f"{name} has several volumes, {several}, and neither the record nor a quorum says which is its home"
        )
    if seen.older is None:
        return Start(fresh=False)
    return _older(seen, seen.older, position, name)


def _not_listed(seen: Seen, position: LogPosition, name: str) -> Refuse | Wait | Join | None:
    """The decision if a quorum's member list lacks the member whose data this is; None if it is listed."""
    volume = seen.tags.volume
    if seen.majority is not None and seen.majority.cluster_id != position.cluster_id:
        return Refuse(
            f"{volume} holds data of etcd cluster {position.cluster_id:x}, the members of {seen.tags.etcd_cluster} are"
            f" of {seen.majority.cluster_id:x}",
            f"correct the tags of {volume}, or detach it",
        )
    if not seen.members:
        return _known_to_be_removed(seen, position, name)
    if any(each.id == position.member_id for each in seen.members):
        return None
    current = listed(seen)
    if current is not None and not _was_added_for_us(seen, current):
        return Refuse(
            f"{volume} is superseded: its member {position.member_id:x} was replaced by {current.id:x}",
            f"{volume} is kept as it is; delete it once nobody needs its data",
            Kind.SUPERSEDED,
        )
    return _removed(seen, position, name, current.id if current else None)


def _known_to_be_removed(seen: Seen, position: LogPosition, name: str) -> Wait | None:
    """Without a quorum: an id that left a quorum's list never returns to it, so etcd must not start with it.

    While the others are away, two such disks with an old member list could form a majority of their own.
    """
    if seen.lacking is None or seen.lacking.member_id != position.member_id or seen.accepted:
        return None
    return Wait(
        f"member {position.member_id:x} of {name} was removed from etcd's member list; no quorum can be asked about it"
        " now",
        Kind.REMOVED,
    )


def _was_added_for_us(seen: Seen, current: Listed) -> bool:
    """Whether the entry under our peer URL is one that a person added for this disk to join with.

    It never started, and it can be for no other disk: the record names this volume as the member's. An entry that has a
    name or a client URL is or was in use by another disk.
    """
    only = seen.siblings is None or not seen.siblings  # `removal` waits until the list is complete
    recorded = seen.generation.volume_of(seen.tags.member) if seen.generation is not None else seen.tags.volume
    return not current.started and not current.name and only and recorded == seen.tags.volume


def _removed(seen: Seen, position: LogPosition, name: str, added: int | None) -> Refuse | Wait | Join:
    verdict = decide_removed(
        Removed(
            name=name,
            etcd_name=seen.name,
            volume=seen.tags.volume,
            peer_url=seen.peer_url,
            position=position,
            epoch=seen.identity.epoch if isinstance(seen.identity, Identity) else 0,
            added=added,
            configured=seen.configured,
            formed=None if seen.generation is None else not seen.generation.open,
            siblings=seen.siblings,
            named_otherwise=added is None and any(each.name == seen.name for each in seen.members or ()),
            answers=seen.answers_elsewhere,
            older=seen.older,
            majority=seen.majority,
            agreed=seen.agreed,
            lacking=seen.lacking if seen.lacking and seen.lacking.member_id == position.member_id else None,
            unrecorded=seen.unrecorded,
            now=seen.now,
            after=seen.rejoin_removed_after,
        )
    )
    match verdict:
        case Later(why):
            return Wait(why, Kind.REMOVED)
        case Never(why, hint):
            return Refuse(why, hint, Kind.REMOVED)
        case _:
            return Join(remove=None, move_aside=True, removed=position.member_id)


def _older(seen: Seen, copy: Older, position: LogPosition, name: str) -> Decision:
    volume = seen.tags.volume
    if seen.accepted:
        return Start(fresh=False, accepted=True)
    why_not = why_not_rejoin(copy, position, seen.majority, agreed=seen.agreed)
    if seen.generation is None or seen.generation.open:
        why_not = why_not or "the generation record does not say that the cluster is formed"
    if seen.rejoined:
        why_not = why_not or f"an older copy of {name} was set aside once already"
    old = listed(seen)
    if not why_not and old is not None and old.id == position.member_id:
        return Join(remove=old.id, move_aside=True, older=copy)
    disk = copy.disk
    why_not = why_not or "etcd does not list its member id under this name"
    return Refuse(
        f"{volume} is an older copy of the disk of {name}: {copy}; {why_not}",
        f"attach the newer disk or bring the other members back; to start with the older data all the same: protokube"
        f" etcd accept {volume} --older --epoch {disk.epoch} --term {disk.term} --commit {disk.commit}",
        Kind.OLDER,
    )


def _no_identity(seen: Seen, name: str) -> Decision:
    volume = seen.tags.volume
    if seen.data is Data.ORIGINAL:
        return Refuse(f"{volume} carries {name} in the layout of the original", f"protokube etcd adopt {volume}")
    if seen.data is not Data.MISSING or not seen.proven_blank:
        return Refuse(f"{volume} has no identity and is not proven blank", f"check the tags of {volume}")
    if seen.mark is not None and not is_untouched(seen.mark):
        return Refuse(f"{volume} was marked {seen.mark!r} and turns up blank: its data was lost outside of us")
    if may_found(seen):
        return Start(fresh=True, write_identity=True)
    if seen.generation is None or not seen.generation.made_by_us(seen.tags.member, volume):
        return Refuse(f"{volume} is not a volume that we made for {name}", "record it, or let the agents make one")
    if seen.mark is None:
        return Wait(f"the provider did not say whether anything was on {volume} before")
    if unclear := _alone(seen, name):
        return unclear
    if not seen.members:
        return _without_quorum(seen, name)
    return _join(seen, name, write_identity=True, move_aside=False)


def _alone(seen: Seen, name: str) -> Wait | Refuse | None:
    """None if this is the member's only volume; otherwise the old id may run on another one."""
    if seen.siblings is None:
        return Wait(f"the list of volumes is not complete; {name} may have another")
    if seen.siblings:
        several = ", ".join((seen.tags.volume, *seen.siblings))
        return Refuse(f"{name} has several volumes: {several}", "untag all but one")
    return None


def _without_quorum(seen: Seen, name: str) -> Decision:
    if seen.lost:
        gone = ", ".join(seen.lost)
        return Refuse(
            f"{name} is blank and the volumes of {gone} are gone: nobody has a quorum to join",
            "keep every volume; a command that rebuilds the cluster from the newest is not built yet: docs/limits.md",
        )
    return Wait(f"{name} is blank and joins the others once they have a quorum")


def may_found(seen: Seen) -> bool:
    """Only a founder, and only while creation is open, or if its member has never started.

    The second case is a late founder: the others formed the cluster with its name in the list, and its blank disk loses
    nothing, because the member never acknowledged anything.
    """
    generation, tags = seen.generation, seen.tags
    if generation is None or not generation.is_founder(tags.member, tags.volume):
        return False
    if isinstance(seen.identity, Identity) and seen.identity.generation != generation.id:
        return False
    if not seen.members:
        return is_open(generation, seen.mark)
    late = listed(seen)  # a quorum knows better than the record whether this member ever started
    if late is None or late.started or late.learner or not late.name:
        return False
    return is_unformed(seen.mark) and (generation.open or seen.siblings == ())


def listed(seen: Seen) -> Listed | None:
    """This member in the others' list, found by its peer URL: ids and names change, the URL is the fixed set."""
    return next((each for each in seen.members or () if seen.peer_url in each.peer_urls), None)


def _join(seen: Seen, name: str, *, write_identity: bool, move_aside: bool) -> Decision:
    old = listed(seen)
    if old is None and any(each.name == seen.name for each in seen.members or ()):
        return Refuse(f"{name} is listed with other peer URLs than {seen.peer_url}", "correct its peer URLs")
    if old is not None and old.learner and not old.started:
        # our own remove and add went through before; starting is what is left
        return Join(remove=None, write_identity=write_identity, move_aside=move_aside)
    return Join(remove=old.id if old else None, write_identity=write_identity, move_aside=move_aside)
