"""An asset in the cache of the machine, identified by its digest."""

from __future__ import annotations

from collections.abc import Sequence

from protokube.nodeup.assets import cache
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import Asset


def look(wanted: Asset, machine: Machine) -> tuple[Change, ...]:
    """Whether the cache has it; a file that nobody touched since it was read is not read again."""
    saw = cache.what_is_cached(machine, wanted)
    if saw == wanted.sha256:
        return ()
    return (Change("cached", f"sha256 {saw}" if saw else "nothing", f"sha256 {wanted.sha256}"),)


def apply(wanted: Asset, changes: Sequence[Change], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Fetch it."""
    cache.obtain(machine, wanted, say)
