"""The revision that this master runs, in a file of its own disk, and the one that it ran before.

An agent starts without waiting for the store, so it must find here what it runs. The former revision is kept beside it:
the way back must not depend on a store that answers.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from protokube.errors import InvalidRequest, ProtokubeError
from protokube.host.files import read_or_none, write_atomic
from protokube.launch import revisions
from protokube.launch.change import fixed, needs_other_machine
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import Revision, decode_revision, encode_revision
from protokube.store import Store

log = logging.getLogger("protokube.agent")
PRESENT, FORMER = "var/lib/protokube/revision.json", "var/lib/protokube/revision.former.json"
MODE = 0o600


def at_start(root: Path, launched: MasterConfig, store: Store) -> MasterConfig:
    """The configuration that an agent runs with: what this master ran before, or what a new machine is to run."""
    found = read(root / PRESENT)
    if found is None or fixed(launched, found.master) or needs_other_machine(launched, found.master):
        found = for_new_machine(launched, store)
        try:
            _write(root / PRESENT, encode_revision(found))
        except OSError as why:  # a full disk must not keep a master from starting; without the file it takes no other
            log.warning("cannot write /%s: %s", PRESENT, why.strerror)
    return found.master


def for_new_machine(launched: MasterConfig, store: Store) -> Revision:
    """By the rollout record; by the launch data if the store does not answer: a master must start without it.

    By the launch data, too, if this machine cannot run what the record says, because it was made for another revision:
    it replaces one of the machines that cannot run that one.
    """
    own = as_revision(launched)
    try:
        record = revisions.read_rollout(store, launched.cluster)
        if record is None or record.at_boot() == launched.revision:
            return own
        found = revisions.read_revision(store, launched.cluster, record.at_boot())
    except (ProtokubeError, OSError) as why:
        log.warning("starting with the launch data: %s", getattr(why, "message", why))
        return own
    if needs_other_machine(launched, found.master):
        log.info("starting with the launch data: this machine cannot run revision %d", found.number)
        return own
    if problems := fixed(launched, found.master):
        log.warning("starting with the launch data: revision %d changes %s", found.number, "; ".join(problems))
        return own
    return found


def as_revision(master: MasterConfig) -> Revision:
    return Revision(
        number=master.revision, digest=revisions.digest_of(master), author="launch data", at=time.time(), master=master
    )


def read(path: Path) -> Revision | None:
    """None if there is none, or one that this version of protokube cannot read."""
    try:
        data = read_or_none(path)
        return decode_revision(data) if data is not None else None
    except (InvalidRequest, OSError) as why:
        log.warning("%s: %s", path, getattr(why, "message", why))
        return None


def take(root: Path, revision: Revision) -> None:
    """Make this the revision that the next start of the agent runs; the present one becomes the former."""
    present = read_or_none(root / PRESENT)
    if present is not None:
        _write(root / FORMER, present)
    _write(root / PRESENT, encode_revision(revision))


def go_back(root: Path) -> Revision:
    """Make the former revision the present one. InvalidRequest if there is none.

    The one that is left becomes the former, so that what only it had is removed; last, so that no crash loses the way.
    """
    left, data = read_or_none(root / PRESENT), read_or_none(root / FORMER)
    if data is None:
        raise InvalidRequest("this master has no former revision", hint="put one in force: `protokube rollout undo`")
    found = decode_revision(data)
    _write(root / PRESENT, data)
    if left is not None:
        _write(root / FORMER, left)
    return found


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data, MODE)
