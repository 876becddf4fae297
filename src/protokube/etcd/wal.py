"""Read the raft position of an etcd member from its write-ahead log, without starting etcd.

Term and commit are those of the last hard state on the disk, never those of entries: etcd writes entries first, so a
crash can leave entries of a term that the member never recorded.

The hard part is that etcd may be writing at the same time. It appends frames, cuts a new segment at 64 MB, removes old
segments, and cuts a torn tail when it starts. A reader therefore remembers which file it read and the last frame it
walked, and starts over when either is no longer the same. It opens the file anew for each read, since an open file
would keep the volume from being unmounted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from protokube.etcd.walsegment import Walked, still_there, walk
from protokube.members.raftmark import LogPosition

SEGMENT = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})\.wal")


class UnreadableLog(Exception):
    """The log has no position that can be relied on; the message gives the file and the reason."""


class SegmentGone(UnreadableLog):
    """There is no such file, or no longer."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of the log."""

    sequence: int
    first_index: int
    """Index of the first entry that may follow."""
    path: Path

    @property
    def unread(self) -> Walked:
        return Walked(last_index=max(self.first_index - 1, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the last read found, and in which file."""

    path: Path
    device: int
    inode: int
    size: int
    walked: Walked
    older: Walked
    """What earlier segments add: their identities, and their hard state where the newest segment has none."""


def read_position(wal_dir: Path) -> LogPosition:
    """The position of the log in this directory. Raises UnreadableLog."""
    return LogReader(wal_dir).read()


class LogReader:
    """Reads one log again and again; each time only what was appended to the newest segment."""

    def __init__(self, wal_dir: Path) -> None:
        self.wal_dir = wal_dir
        self._seen: Seen | None = None

    def read(self) -> LogPosition:
        """The position as the file shows it now; it may not have reached the disk yet. Raises UnreadableLog."""
        segments = _segments(self.wal_dir)
        with _opened(segments[0].path) as file:
            return self._position(file, segments)

    def sync_and_read(self) -> LogPosition:
        """A position that has reached the disk: read, then synced. Raises UnreadableLog, or OSError if the sync fails.

        Whatever etcd appends between the two is synced as well, but not reported.
        """
        segments = _segments(self.wal_dir)
        with _opened(segments[0].path) as file:
            position = self._position(file, segments)
            os.fdatasync(file)
        return position

    def _position(self, file: int, segments: Sequence[Segment]) -> LogPosition:
        with _readable(segments[0].path):
            self._seen = seen = _follow(file, segments, self._seen)
        identities = seen.walked.identities | seen.older.identities
        if len(identities) > 1:
            raise UnreadableLog(f"the metadata in {self.wal_dir} name different clusters or members")
        ((cluster_id, member_id),) = identities
        hard_state = seen.walked.hard_state or seen.older.hard_state
        if hard_state is None and segments[-1].sequence > 0:
            raise UnreadableLog(f"no hard state in {self.wal_dir}, and its first segment is gone")
        term, commit = hard_state or (0, 0)  # a log that was only just created has none
        last_index = seen.walked.last_index
        return LogPosition(cluster_id=cluster_id, member_id=member_id, term=term, commit=commit, last_index=last_index)


def _follow(file: int, segments: Sequence[Segment], last: Seen | None) -> Seen:
    """Walk what is new in the newest segment; all of it if `last` is of another file, or of one that was cut since."""
    newest, now = segments[0], os.fstat(file)
    source = newest.path, now.st_dev, now.st_ino
    if (
        last is not None
        and (last.path, last.device, last.inode) == source
        and last.size <= now.st_size
        and still_there(file, last.walked)
    ):
        return replace(last, size=now.st_size, walked=walk(file, last.walked))
    walked = walk(file, newest.unread)
    _require_metadata(walked, newest)
    older = _older(segments, want_state=walked.hard_state is None)
    return Seen(path=source[0], device=source[1], inode=source[2], size=now.st_size, walked=walked, older=older)


def _older(segments: Sequence[Segment], *, want_state: bool) -> Walked:
    """The identities of all earlier segments, and the hard state that was in force when the newest began."""
    found = Walked()
    for newer, segment in pairwise(segments):
        if want_state and newer.sequence != segment.sequence + 1:
            raise UnreadableLog(f"the segment before {newer.path} is missing")
        try:
            with _opened(segment.path) as file, _readable(segment.path):
                walked = walk(file, segment.unread, only_identity=not want_state)
        except SegmentGone:
            if want_state:
                raise
            continue  # etcd removes the oldest segments while it runs
        _require_metadata(walked, segment)
        found = replace(found, identities=found.identities | walked.identities)
        if want_state and walked.hard_state is not None:
            found, want_state = replace(found, hard_state=walked.hard_state), False
    return found


def _require_metadata(walked: Walked, segment: Segment) -> None:
    if not walked.identities:
        raise UnreadableLog(f"{segment.path} has no metadata")


def _segments(wal_dir: Path) -> list[Segment]:
    """The segments of a log, the newest first; at least one."""
    with _readable(wal_dir):
        matches = [SEGMENT.fullmatch(path.name) for path in wal_dir.iterdir()]
    found = [Segment(int(match[1], 16), int(match[2], 16), wal_dir / match[0]) for match in matches if match]
    if not found:
        raise UnreadableLog(f"{wal_dir} has no segment")
    return sorted(found, key=lambda each: each.path.name, reverse=True)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    with _readable(path):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise SegmentGone(f"{path} is not there") from error
    except OSError as error:
        raise UnreadableLog(f"cannot read {path}: {error.strerror or error}") from error
