"""Keep the services of new packages from starting while they are installed.

Debian's maintainer scripts ask /usr/sbin/policy-rc.d before they start anything. Ours says no only to those that carry
a variable which we give to our own apt-get: every other install, also at the same time and also after we were killed,
gets the answer of the user's own file, or that of a machine without one. So a file that a killed run left changes
nothing for anybody; the next run removes it.

The user's own file is kept beside it, and put back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protokube.host.files import flush_folder, read_or_none
from protokube.nodeup.machine import Machine

POLICY = "/usr/sbin/policy-rc.d"
KEPT = f"{POLICY}.before-protokube"
"""The user's own file, during an install of ours."""
DRAFT = "/usr/sbin/.policy-rc.d.protokube"
"""Always the same, so that one that a kill left is found."""
VARIABLE = "PROTOKUBE_INSTALLS"
MARK = b"# Written by `protokube nodeup` for the time of an install.\n"
SCRIPT = b"""#!/bin/sh
%(mark)s# Owner: %(owner)s
if [ "${%(variable)s:-}" = yes ]; then exit 101; fi
if [ -x %(kept)s ]; then exec %(kept)s "$@"; fi
exit 0
"""


def left_over(machine: Machine) -> bool:
    """Whether a file of ours is there, and the run that wrote it is not."""
    policy, kept = machine.path(POLICY), machine.path(KEPT)
    content = ours(policy)
    if content is not None:
        return not alive(content)
    return os.path.lexists(machine.path(DRAFT)) or same(policy, kept)


def same(policy: Path, kept: Path) -> bool:
    """Whether they are two names of one file: then nothing of ours was written yet."""
    return os.path.lexists(policy) and os.path.lexists(kept) and os.path.samestat(policy.lstat(), kept.lstat())


def ours(policy: Path) -> bytes | None:
    """The content of our file; None if there is none, or one of somebody else."""
    try:
        content = None if policy.is_symlink() else read_or_none(policy)
    except OSError:  # a folder, or a file that cannot be read: not ours
        return None
    return content if content is not None and MARK in content else None


def alive(content: bytes) -> bool:
    owner = content.partition(b"# Owner: ")[2].partition(b"\n")[0].decode(errors="replace")
    pid = owner.partition(" ")[0]
    return pid.isdigit() and owner == process(int(pid))


def process(pid: int) -> str:
    """A process by its number and start, which no later process shares; empty if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return f"{pid} {stat.rpartition(')')[2].split()[19]}"


@contextmanager
def kept_from_starting(machine: Machine) -> Iterator[dict[str, str]]:
    """Write our file, and remove it at the end. Returns the variables that our installs have to carry."""
    remove(machine)
    policy, draft = machine.path(POLICY), machine.path(DRAFT)
    policy.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(policy):
        keep(policy, machine.path(KEPT), draft)
    owner = process(os.getpid()).encode()
    values = {b"mark": MARK, b"owner": owner, b"variable": VARIABLE.encode(), b"kept": KEPT.encode()}
    try:
        draft.write_bytes(SCRIPT % values)
        draft.chmod(0o755)
        draft.replace(policy)
        yield {VARIABLE: "yes"}
    finally:
        remove(machine)


def keep(policy: Path, kept: Path, draft: Path) -> None:
    """Give the user's file a second name: it is found under one of them at every instant."""
    os.link(policy, draft, follow_symlinks=False)
    draft.replace(kept)


def remove(machine: Machine) -> bool:
    """Remove what is ours and put the user's file back; return whether there was anything."""
    policy, kept, draft = machine.path(POLICY), machine.path(KEPT), machine.path(DRAFT)
    found = ours(policy) is not None
    if found and os.path.lexists(kept):
        kept.replace(policy)
    elif found:
        policy.unlink()
    elif same(policy, kept):
        kept.unlink()
        found = True
    if os.path.lexists(draft):
        draft.unlink()
        found = True
    if found:
        flush_folder(policy.parent)
    return found
