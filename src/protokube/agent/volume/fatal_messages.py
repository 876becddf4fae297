"""Read the fatal messages of etcd in its container log, which reveal faults of its disk that no record has.

If they prove that the disk lacks entries that its member acknowledged, the fence stops the member at once: it removes
the manifest, etcd stops, and the volume is unmounted, mounted again and checked. Before that check is judged, the proof
is recorded off the disk. If they report corrupt data, etcd is not started again for as long as this mount lasts.

A container log does not last: the kubelet deletes it together with the pod. So findings are noted in /run first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from protokube.agent.cache import StepCache
from protokube.agent.edges import Edges
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import mounted_volumes, raftmarks, verified
from protokube.agent.volume.runnotes import RunNotes
from protokube.errors import Refused, TryLater
from protokube.etcd import fatal_messages
from protokube.etcd.wal import UnreadableLog
from protokube.host import Mount, podlogs
from protokube.host.bounded import bounded
from protokube.launch.machine import EtcdCluster
from protokube.members.fatal_messages import FatalMessage, corrupt_message, proof_of_a_copy, too_new_message
from protokube.members.identity import Identity
from protokube.members.raftmark import LogPosition

STEP = "etcd"
NOTES = RunNotes("lastwords")
YOUNG, OFTEN = 10.0, 1.0
"""Seconds after the start of a member during which rounds run this often: a copy must not serve for long."""
SURE = 5.0
"""Seconds for which a member must not answer before its data is reported as corrupt."""
NAMESPACE, CONTAINER = "kube-system", "etcd-container"


@dataclass(slots=True)
class FatalMessagesCache(StepCache):
    output: dict[str, tuple[Sequence[podlogs.LogFile], Sequence[FatalMessage]]] = field(default_factory=dict)
    """By pod: its log files when they were last read, and etcd's fatal messages in them. If lost, they are read once
    more."""
    proofs: dict[str, tuple[str, CopyProof]] = field(default_factory=dict)
    """By volume: the mount, and the proof that it is a copy; also noted, as soon as /run can be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProof:
    """Proof from etcd's log that a disk which is served here is an older copy."""

    sentence: str
    document: Mapping[str, Any]
    """The note to write before the disk is unmounted, for the next check of the disk."""


def of_a_copy(round_: Round, mount: Mount, identity: Identity) -> CopyProof | None:
    """The proof from etcd's log that a disk which is served here is an older copy; None without one."""
    edges, volume = round_.edges, identity.volume
    etcd = round_.wanted.etcd_cluster(identity.etcd_cluster)
    since = verified.since(edges, volume, mount)
    if etcd is None or since is None:
        return None
    if round_.waited(f"listening to etcd on {volume}") < YOUNG:
        round_.within(OFTEN)
    if (noted := NOTES.read_document(edges, volume)) is not None and "acknowledged" in noted:
        return CopyProof(sentence=str(noted["sentence"]), document=noted)  # an earlier round began to stop it
    proofs = edges.cache.of(FatalMessagesCache).proofs
    if volume in proofs and proofs[volume][0] == mount.key:
        return proofs[volume][1]
    messages = _messages(round_, etcd)
    if not any(each.acknowledged for each in messages):
        return None
    try:
        folder = raftmarks.folder_at(mount.point, etcd)
        position = mounted_volumes.on_volume(
            lambda: edges.logs.position(folder), f"reading etcd's log on {mount.point}"
        )
    except (TryLater, UnreadableLog):
        return None  # a write-ahead log that cannot be read now proves nothing
    proof = proof_of_a_copy(messages, position, since)
    if proof is None:
        return None
    document = {
        "sentence": proof.sentence, "acknowledged": proof.acknowledged, "epoch": identity.epoch,
        "generation": identity.generation, "cluster": position.cluster_id, "member": position.member_id,
    }  # fmt: skip
    found = CopyProof(sentence=proof.sentence, document=document)
    proofs[volume] = (mount.key, found)
    return found


def note(edges: Edges, volume: str, proof: CopyProof) -> None:
    if NOTES.read_document(edges, volume) != proof.document:
        NOTES.write_document(edges, volume, proof.document)
    edges.cache.of(FatalMessagesCache).proofs.pop(volume, None)


def record(round_: Round, disk: MountedVolume, position: LogPosition) -> None:
    """Record the noted proof about this member's disk, before the disk is judged. TryLater if the store fails."""
    noted = NOTES.read_document(round_.edges, disk.volume)
    if noted is None or "acknowledged" not in noted:
        return
    generation, member = noted["generation"], (noted["cluster"], noted["member"])
    assert isinstance(disk.identity, Identity)
    if (generation, *member) == (disk.identity.generation, position.cluster_id, position.member_id):
        acknowledged, epoch = int(noted["acknowledged"]), int(noted["epoch"])
        raftmarks.acknowledge(
            round_, disk.etcd.key, generation, position, acknowledged=acknowledged, copied_epoch=epoch
        )
        round_.report.done(STEP, f"recorded that its member acknowledged index {acknowledged}", disk.name)
    forget(round_.edges, disk.volume)


def corrupt(round_: Round, disk: MountedVolume) -> str:
    """etcd's message about corrupt data that it cannot start with; "" if it runs, or logged no such message.

    For a member that is served, or was until it logged this: the answer does not change while the mount lasts.
    """
    edges = round_.edges
    since = verified.since(edges, disk.volume, disk.mount) if disk.mount else None
    if since is None:
        return ""
    if (noted := NOTES.read_document(edges, disk.volume)) is not None and noted.get("corrupt"):
        return str(noted["sentence"])
    message = corrupt_message(_messages(round_, disk.etcd), since)
    if message is None or _answers(round_, disk):
        return ""
    round_.within(OFTEN)
    if round_.waited(f"corrupt data of {disk.name}") < SURE:
        return ""
    NOTES.write_document(edges, disk.volume, {"sentence": message.sentence, "corrupt": True})
    return message.sentence


def too_new(round_: Round, disk: MountedVolume) -> str:
    """etcd's message that its data is too new for its program; "" if it runs, or logged no such message."""
    since = verified.since(round_.edges, disk.volume, disk.mount) if disk.mount else None
    message = too_new_message(_messages(round_, disk.etcd), since) if since is not None else None
    return "" if message is None or _answers(round_, disk) else message.sentence


def forget(edges: Edges, volume: str) -> None:
    NOTES.forget(edges, volume)


def prune(round_: Round, mounted: Collection[str]) -> None:
    """Delete notes about mounts that are over, and about volumes that other machines hold by now."""
    for volume in NOTES.volumes(round_.edges):
        listed, noted = round_.volume(volume), NOTES.read_document(round_.edges, volume) or {}
        elsewhere = listed is not None and listed.attached_to != round_.edges.me.id
        if elsewhere or (volume not in mounted and "acknowledged" not in noted):
            forget(round_.edges, volume)


def _answers(round_: Round, disk: MountedVolume) -> bool:
    try:
        round_.edges.etcd[disk.etcd.key].status(disk.member.name)
    except TryLater:
        return False
    except Refused:
        return True
    return True


def _messages(round_: Round, etcd: EtcdCluster) -> Sequence[FatalMessage]:
    """All fatal messages in the pod's log: searched once a round, and only if the log changed."""
    if etcd.pod.name in round_.fatal_messages:
        return round_.fatal_messages[etcd.pod.name]
    round_.fatal_messages[etcd.pod.name] = found = _read_output(round_, etcd)
    return found


def _read_output(round_: Round, etcd: EtcdCluster) -> Sequence[FatalMessage]:
    edges, output = round_.edges, round_.edges.cache.of(FatalMessagesCache).output
    folder, others = edges.inside(podlogs.FOLDER), [each.pod.name for each in round_.wanted.etcd]
    known = output.get(etcd.pod.name)

    def read() -> tuple[Sequence[podlogs.LogFile], Sequence[FatalMessage]]:
        files = podlogs.newest(folder, NAMESPACE, etcd.pod.name, CONTAINER, others)
        if known is not None and known[0] == files:
            return known
        return files, fatal_messages.find(line for file in files for line in podlogs.lines(file))

    try:
        output[etcd.pod.name] = found = bounded(
            read, mounted_volumes.PATIENCE, f"reading the output of {etcd.pod.name}"
        )
    except (OSError, TryLater):
        return ()  # a log that cannot be read proves nothing
    return found[1]
