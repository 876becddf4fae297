"""What needs a person, as seen from outside: pure.

Agents say most of it themselves. Four things they cannot always say: that the cloud around them does not run, that the
generation record is missing, that the volumes which are left make no quorum, and, before the elected one has had its
next round, that a rollout stopped. A host that is down is no reason: it
comes back with its disk, or another takes the disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.rollout import HINT, State
from protokube.members.lostquorum import quorum_lost
from protokube.notes import Note
from protokube.view.seen import AgentNote, SeenCluster

GOES_ON = "starts it and goes on with what runs"
NO_RECORD = "restore it from a backup of the state store; nothing is founded or replaced without it"


def needs(view: SeenCluster) -> Iterator[AgentNote]:
    """In the order in which a person has to act."""
    if view.daemon and not view.daemon.alive and not view.daemon.timed_out:
        if view.daemon.stopped:
            yield _seen("cloud", "", "the cluster is stopped", f"`protokube start --cluster {view.cluster}`")
        else:
            command = "start" if view.rollout else "up"  # without a revision, nothing is known that could be started
            yield _seen(
                "cloud", "", "the local cloud does not run", f"`protokube {command} --cluster {view.cluster}` {GOES_ON}"
            )
    for key in keys(view):
        if view.generations.get(key) is None and key not in view.unread and has_begun(view, key):
            yield _seen("generation", key, f"the generation record of {key} is missing or cannot be read", NO_RECORD)
        if (lost := _lost(view, key)) is not None:
            yield lost
    if view.rollout and view.rollout.state is State.STOPPED and view.rollout.failure:
        yield _seen("revision", "", str(view.rollout.failure), HINT)


def keys(view: SeenCluster) -> list[str]:
    """The etcd clusters, in the order of their members; the first one carries the election."""
    return list(dict.fromkeys(each.key for each in view.members))


def has_begun(view: SeenCluster, key: str) -> bool:
    """Whether bring-up came as far as the record: it is written before any host starts, and disks are made before."""
    return bool(view.hosts) or any(each.mark for each in view.disks if each.member.startswith(f"{key}/"))


def _lost(view: SeenCluster, key: str) -> AgentNote | None:
    if not view.volumes_known:
        return None
    members = [each for each in view.members if each.key == key]
    record = view.generations.get(key)
    shorts = [each.member.partition("/")[2] for each in members if each.volume is None]
    gone = {short: record.volume_of(short) if record else "" for short in shorts}
    lost = quorum_lost(key, gone, len(members))
    if lost is None or view.has_quorum(key):  # members may answer for a moment after their volumes went
        return None
    return _seen("lost", key, lost.message, lost.hint)


def _seen(step: str, about: str, text: str, hint: str) -> AgentNote:
    return AgentNote(host="", note=Note(step=step, about=about, text=text, hint=hint))
