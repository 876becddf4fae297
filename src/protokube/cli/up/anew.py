"""A first `up` that was interrupted, and a second one that asks for something else.

A cluster that was never formed cannot be changed by a rollout: no master takes it. If nothing in it can be data, what
is left of it is removed, and `up` begins anew; else the former configuration is all that `up` continues with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from protokube.cli.shared.progress import Progress
from protokube.errors import InvalidSpec, Refused

if TYPE_CHECKING:
    from protokube.launch.plan import ChangePlan
    from protokube.local.base.paths import Paths


class OtherShape(Refused):
    """An existing cluster has another shape than asked for."""

    cluster = ""


class OtherFields(InvalidSpec):
    """An existing cluster has other values in fields that cannot change."""

    cluster = ""


def beginning_anew(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call `up` again without the cluster that was in its way, if that was never formed."""

    @wraps(function)
    def command(**options: Any) -> Any:
        try:
            return function(**options)
        except (OtherShape, OtherFields) as why:
            if options["dry_run"] or not _discarded(why.cluster, quiet=options["output"] == "json"):
                raise
        return function(**options)

    return command


def _discarded(cluster: str, *, quiet: bool) -> bool:
    from protokube.local.base.paths import Paths
    from protokube.local.unborn import discard, why_kept

    paths = Paths.of(cluster)
    if why_kept(paths):
        return False
    text = f"{cluster} was interrupted before it had data: what was left of it is removed"
    with Progress(quiet=quiet).step(text):
        discard(paths)
    return True


def refuse_change(paths: Paths, change: ChangePlan | None, *, dry_run: bool) -> None:
    """OtherShape for a change of a cluster without data: its masters may not exist, so nobody would take it."""
    from protokube.local.unborn import why_kept

    if change and change.changes and not dry_run and not why_kept(paths):
        hint = f"`protokube up --cluster {paths.cluster}`, without other settings, goes on with it"
        raise of(paths.cluster, OtherShape(f"{paths.cluster} was interrupted before it had data", hint=hint))


def of(cluster: str, error: OtherShape | OtherFields) -> Refused | InvalidSpec:
    """The error, with the cluster that it is about."""
    error.cluster = cluster
    return error
