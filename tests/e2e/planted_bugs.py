"""Bugs that are planted into a real agent. Its source is the program that a host runs instead of `protokube agent`.

The product has no hook for this: the program replaces functions of the product in its own process, and then becomes the
agent. Disk work is done by children that import nothing from here; a bug in those is planted in the program that the
agent starts for them. Only what the host itself has is imported, since it does not see the tests.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from protokube.agent.volume import evidence, fence, raftmarks
from protokube.host import Content, Probed, Result, disks, jobs
from protokube.host.child import run
from protokube.members.identity import Identity
from protokube.records import member

CHILD = """
import runpy, sys
program = runpy.run_path(RUN)
program["stand_in"]("protokube", program["HOST"].parent)
program["stand_in"]("protokube.host", program["HOST"])
from protokube.host.child import formatting, mounting, work
BUG
work.main(sys.argv[1])
"""
"""What `run.py` does as a program, with a bug planted before the work begins."""


def put(owner: Any, name: str, bug: Any) -> None:
    setattr(owner, name, bug)


def in_the_child(bug: str) -> None:
    code = CHILD.replace("RUN", repr(run.__file__)).replace("BUG", bug)
    put(disks.HostDisks.__init__, "__kwdefaults__", {**(disks.HostDisks.__init__.__kwdefaults__ or {}),
        "command": (sys.executable, "-I", "-S", "-c", code)})  # fmt: skip


def the_fence_does_nothing() -> None:
    put(fence, "reason", lambda *_, **__: "")


def the_epoch_is_not_raised() -> None:
    put(Identity, "taken_over_by", lambda self, holder, seen=0: replace(self, holder=holder))


def any_epoch_overwrites_a_name() -> None:
    put(member, "_outranked", lambda *_: None)


def no_copy_is_ever_older() -> None:
    put(evidence, "older_copy", lambda *_: None)


def every_disk_looks_blank() -> None:
    """To the agent: what its child found is not what it takes from it."""
    right = jobs.result

    def bug(output: str, status: int) -> Result:
        found = right(output, status)
        is_foreign = isinstance(found, Probed) and found.content is Content.FOREIGN
        return Probed(content=Content.BLANK, description="blank") if is_foreign else found

    put(jobs, "result", bug)


def the_child_formats_whatever_is_there() -> None:
    in_the_child("formatting.refuse_unless_allowed = lambda *_: None")


def a_disk_in_use_is_mounted() -> None:
    """The child claims nothing, and does not run e2fsck, which would claim the device as well."""
    in_the_child("""
from protokube.host.child import proof, reading
proof.claim = mounting.claim = lambda wanted, flags: reading.open_direct(wanted.path, flags)
mounting.check = lambda wanted: None
""")


def the_mark_is_what_etcd_says() -> None:
    """Its status counts what is committed in memory. Recorded in every round, so that it is a recent one."""
    one, mark = raftmarks._one, raftmarks._mark

    def bug(round_: Any, disk: Any) -> None:
        commit = round_.edges.etcd[disk.etcd.key].status(disk.member.name).raft_index
        put(raftmarks, "_mark", lambda generation, position: replace(mark(generation, position), commit=commit))
        one(round_, disk)

    put(raftmarks, "EVERY", 0.0)
    put(raftmarks, "_one", bug)


BUGS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        the_fence_does_nothing, the_epoch_is_not_raised, any_epoch_overwrites_a_name, no_copy_is_ever_older,
        every_disk_looks_blank, the_child_formats_whatever_is_there, a_disk_in_use_is_mounted,
        the_mark_is_what_etcd_says,
    )
}  # fmt: skip


def be_the_agent(*bugs: str) -> None:
    for each in bugs:
        BUGS[each]()
    sys.argv = ["protokube", "agent"]
    runpy.run_module("protokube", run_name="__main__")
