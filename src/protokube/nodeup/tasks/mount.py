"""A disk of the user's, mounted by a systemd mount unit.

The hard part is not to lose what is on it. A disk is formatted only if that was asked for and it is proven blank, by
the same proofs and in the same child process as the disks of etcd: every read succeeded, all that was read is zero,
there is no signature, nothing on this machine uses it. What holds the wanted file system is mounted as it is; anything
else, or a disk that is mounted elsewhere, is refused and not touched. A mount never hides files that are there.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.host import Block, Content, Device, Done, Failed, Format, Job, Probe, Probed, Result
from protokube.host.disks import HostDisks
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.units import state
from protokube.nodeup.units.names import mount_unit
from protokube.nodeup.values import Mount, Unit

NAMESPACE = uuid.UUID("6b1b4f4e-9d0b-4a53-8a5c-1f7f0a4f9c35")
FORMATTED = "ext4"
"""The only file system that is made here."""

PAUSE = 0.05


def look(wanted: Mount, machine: Machine) -> tuple[Change, ...]:
    """What differs. Refused if the disk or its place is not free for it."""
    check(wanted)
    unit = state.look(unit_of(wanted), machine)
    if not machine.boots:
        return unit
    disks = HostDisks()
    try:
        block = find(wanted, disks)
        if is_mounted(wanted, block, disks):
            return unit
        refuse_hiding(wanted)
        changes = what_is_on_it(wanted, probed(block, disks))
        return changes + unit
    finally:
        disks.close()


def apply(wanted: Mount, changes: tuple[Change, ...], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Format it if it is to be and is proven blank, then write and start its unit."""
    if machine.boots:
        disks = HostDisks()
        try:
            block = find(wanted, disks)
            if not is_mounted(wanted, block, disks):
                refuse_hiding(wanted)
                seen = probed(block, disks)
                if what_is_on_it(wanted, seen):
                    say(f"formatting {wanted.device}, which was proven blank")
                    make(wanted, block, seen, disks)
        finally:
            disks.close()
    machine.path(wanted.path).mkdir(parents=True, exist_ok=True)
    state.apply(unit_of(wanted), machine, say)


def check(wanted: Mount) -> None:
    words = (wanted.device, wanted.path, wanted.file_system, *wanted.options)
    if any(sign in word for word in words for sign in "\n\0") or not Path(wanted.path).is_absolute():
        raise InvalidRequest(f"{wanted.path!r} cannot be a mount point", want="an absolute path")
    if wanted.path in ("/", "/etc", "/usr", "/var", "/bin", "/lib", "/sbin", "/boot", "/dev", "/proc", "/sys", "/run"):
        raise Refused(f"nothing is mounted at {wanted.path}: this machine would not boot")
    if wanted.format and wanted.file_system != FORMATTED:
        raise Refused(
            f"{wanted.file_system} is not made here", want=FORMATTED, hint="make it yourself, without `format`"
        )


def unit_of(wanted: Mount) -> Unit:
    """Not required by the boot: without its disk a machine still starts, and says what is missing."""
    content = (
        f"# Written by protokube nodeup.\n[Unit]\nDescription={wanted.path}\n\n"
        f"[Mount]\nWhat={percent(wanted.device)}\nWhere={percent(wanted.path)}\nType={wanted.file_system}\n"
        f"Options={percent(','.join(wanted.options))}\n\n[Install]\nWantedBy=local-fs.target\n"
    )
    return Unit(name=mount_unit(wanted.path), content=content, enabled=True, running=True)


def percent(text: str) -> str:
    """systemd replaces % in a unit."""
    return text.replace("%", "%%")


def find(wanted: Mount, disks: HostDisks) -> Block:
    block = disks.find(Device(path=Path(wanted.device), serial=None))
    if block is None:
        raise TryLater(
            f"there is no disk {wanted.device} for {wanted.path}",
            hint="`ls -l /dev/disk/by-id` shows the disks of this machine",
        )
    return block


def is_mounted(wanted: Mount, block: Block, disks: HostDisks) -> bool:
    """Refused if it is mounted elsewhere, or another one is there."""
    table = disks.mounts()
    there = [each for each in table if each.point == Path(wanted.path)]
    if there and there[-1].number != block.number:
        major, minor = there[-1].number
        raise Refused(
            f"another file system is mounted at {wanted.path}",
            saw=f"{there[-1].type} on device {major}:{minor}",
            want=wanted.device,
            hint="unmount it, if that is not needed",
        )
    elsewhere = [str(each.point) for each in table if each.number == block.number and each.point != Path(wanted.path)]
    if not there and elsewhere:
        raise Refused(f"{wanted.device} is mounted elsewhere", saw=", ".join(elsewhere), want=wanted.path)
    return bool(there)


def refuse_hiding(wanted: Mount) -> None:
    place = Path(wanted.path)
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise Refused(f"{wanted.path} is no folder, so nothing can be mounted there")
    if place.is_dir() and any(each.name != "lost+found" for each in place.iterdir()):
        raise Refused(
            f"mounting {wanted.device} at {wanted.path} would hide the files that are there",
            want="an empty folder, or none",
            hint=f"move them away, or onto {wanted.device}",
        )


def what_is_on_it(wanted: Mount, seen: Probed) -> tuple[Change, ...]:
    """What is to be done about its content: nothing if it has the file system. Refused unless it is blank else."""
    article = "an" if wanted.file_system[0] in "aeioux" else "a"
    if seen.content is Content.EXT4 and wanted.file_system == FORMATTED:
        return ()
    if seen.content is Content.FOREIGN and seen.description.startswith(f"{article} {wanted.file_system} file system"):
        return ()
    unfinished = seen.content is Content.DIRTY and seen.uuid == identity(wanted)
    if wanted.format and (seen.content is Content.BLANK or unfinished):
        if wanted.format_options:
            raise Refused(
                f"{wanted.device} is not formatted: options for that are not supported",
                saw=" ".join(wanted.format_options),
                hint="make the file system yourself, or leave formatOptions out",
            )
        return (Change("file system", "a format of ours, unfinished" if unfinished else "none", wanted.file_system),)
    if seen.content is Content.BUSY:
        raise Refused(f"{wanted.device} is in use", saw=seen.description)
    if seen.content is Content.BLANK:
        hint = "with `format: true` an ext4 is made on a blank disk"
        raise Refused(f"{wanted.device} has no file system", saw="a blank disk", want=wanted.file_system, hint=hint)
    raise Refused(
        f"refusing to touch {wanted.device}: it is not what {wanted.path} needs",
        saw=seen.description,
        want=f"{wanted.file_system}{', or a blank disk' if wanted.format else ''}",
        hint=f"check that it is the right disk; if its data may go, run `wipefs --all {wanted.device}` and clear it",
    )


def identity(wanted: Mount) -> str:
    """The UUID that a format of ours has here: so a killed one is known again, and another's is not."""
    return str(uuid.uuid5(NAMESPACE, f"{wanted.device}\n{wanted.path}"))


def probed(block: Block, disks: HostDisks) -> Probed:
    seen = collected(disks, Probe(block=block))
    if isinstance(seen, Probed):
        return seen
    raise failure(seen, f"{block.path} cannot be read")


def collected(disks: HostDisks, job: Job) -> Result:
    """Run a job to its end; it has a deadline of its own."""
    while (result := disks.run(job)) is None:
        time.sleep(PAUSE)
    return result


def make(wanted: Mount, block: Block, seen: Probed, disks: HostDisks) -> None:
    """The child proves again that it is blank, with the disk held open, right before it writes."""
    again = seen.content is Content.DIRTY
    done = collected(disks, Format(block=block, uuid=identity(wanted), again=again))
    if not isinstance(done, Done):
        raise failure(done, f"{wanted.device} was not formatted")


def failure(result: Result, text: str) -> Refused | TryLater:
    assert isinstance(result, Failed)
    kind = TryLater if result.killed or result.overdue else Refused
    return kind(text, saw=result.why)
