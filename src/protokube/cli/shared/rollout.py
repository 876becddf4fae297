"""Put a revision in force and follow its rollout: what `up` and `rollout undo` share."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from protokube.errors import Refused, TryLater

if TYPE_CHECKING:
    from protokube.cli.shared.progress import Progress
    from protokube.etcd import Etcd
    from protokube.launch.machine import MasterConfig
    from protokube.launch.plan import ChangePlan
    from protokube.launch.revisions import Revision
    from protokube.launch.rollout import Event, Rollout
    from protokube.launch.versions import StillOld
    from protokube.local.base.paths import Paths
    from protokube.store import Store

EVERY = 0.25
"""Seconds between two reads of the record."""
ANNOUNCE_EVERY = 5.0
SURVEY = 2.0


def groups_of(wanted: MasterConfig) -> list[str]:
    """The masters, by their groups."""
    return list(dict.fromkeys(each.group or each.name for etcd in wanted.etcd for each in etcd.members))


def confirm(plan: ChangePlan, cluster: str, *, yes: bool) -> None:
    """Refused if nothing answers during the change and the user has not accepted that."""
    if plan.api_away and not yes:
        replaced = any(plan.replacing)
        doing = "its host is replaced" if replaced else f"it restarts {' and '.join(plan.restarts)}"
        raise Refused(
            f"{cluster} has one master: while {doing}, nothing answers",
            want="--yes, if that is acceptable now",
            hint="nothing was written",
        )


def still_old(paths: Paths, store: Store, record: Rollout, present: MasterConfig, wanted: MasterConfig) -> StillOld:
    """Old versions that are in use beside newer ones, to which masters may return.

    Only etcd clusters whose programs would go back are asked; one that does not answer has no way back.
    """
    from protokube.launch.rollout import State
    from protokube.launch.versions import StillOld, in_use, lowered
    from protokube.local import bringup
    from protokube.local.view.look import look
    from protokube.providers.clients.local import LocalClient

    agreed = {}
    for etcd in (each for each in present.etcd if each.key in lowered(present, wanted)):
        with suppress(TryLater, Refused):
            client = bringup.etcd_client(paths, bringup.endpoints(LocalClient(paths.admin_socket, patience=5), etcd))
            try:
                versions = [each.version for each in client.survey(SURVEY).values()]
                agreed[etcd.key] = in_use(client.cluster_version(), versions)
            finally:
                client.close()
    if record.state is State.DONE or not present.components:
        return StillOld(etcd=agreed)
    running = {each.revision for each in look(paths).agents if each.revision and not each.stale}
    return StillOld(etcd=agreed, kubernetes=oldest_api(store, paths.cluster, running))


def oldest_api(store: Store, cluster: str, running: Iterable[int]) -> str:
    """The oldest version of Kubernetes among the revisions that masters run; empty if none is known."""
    from protokube.launch.revisions import by_number, with_versions
    from protokube.launch.versions import kubernetes_of
    from protokube.spec.version import parse

    known, numbers = by_number(store, cluster), set(running)
    found = [kubernetes_of(with_versions(each)) for number, each in known.items() if number in numbers]
    return min((each for each in found if parse(each)), key=lambda each: parse(each) or (), default="")


def author() -> str:
    """The person who runs this command: behind sudo, the one who typed it."""
    try:
        name = os.environ.get("SUDO_USER") or getpass.getuser()
    except (OSError, KeyError):  # no such user in the password database
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def announce(etcd: Etcd, revision: int) -> None:
    """Have the agents read the record now; those that are not reached read it within a minute."""
    from protokube.agent.etcd.presence import ROLLOUT

    with suppress(TryLater, Refused):
        etcd.put(ROLLOUT, f"{revision} at {time.time():.0f}")


def follow(
    progress: Progress,
    store: Store,
    revision: Revision,
    timeout: float,
    *,
    waits: Callable[[], list[str]],
    announce: Callable[[], None],
) -> Rollout:
    """Wait until all masters run the revision, and print the timeline. Refused, with the reason, if it stopped.

    `timeout` is for each step: a rollout of nine masters may take long, as long as it goes on.
    """
    try:
        return _follow(progress, store, revision, timeout, waits, announce)
    except KeyboardInterrupt:  # ends the command that waits, and not the rollout
        status = f"`protokube rollout status --cluster {revision.master.cluster}`"
        progress.note(f"revision {revision.number} goes on by itself: {status} shows how far it is")
        raise


def _follow(
    progress: Progress, store: Store, revision: Revision, timeout: float, waits: Callable[[], list[str]],
    announce: Callable[[], None],
) -> Rollout:  # fmt: skip
    from protokube.cli.render.rollout import event_line
    from protokube.launch.revisions import read_rollout
    from protokube.launch.rollout import Event, State

    cluster, shown = revision.master.cluster, set[Event]()
    last = announced = time.monotonic()
    announce()
    while True:
        record = read_rollout(store, cluster)
        assert record is not None
        for each in since(record, revision.number):
            if each not in shown:
                progress.note(event_line(each))
                last = time.monotonic()
                shown.add(each)
        if record.wanted != revision.number:
            raise Refused(
                f"revision {record.wanted} was put in force meanwhile, so {revision.number} is not rolled out",
                hint="`protokube rollout status` shows what goes on",
            )
        if record.state is State.DONE:
            return record
        if record.state is State.STOPPED and record.turn is None:
            raise stopped(record)
        if time.monotonic() - last > timeout:
            raise TryLater(
                f"the rollout of revision {revision.number} has made no progress for {timeout:.0f} s",
                saw="; ".join(waits()) or "the agents report no wait",
                hint="it goes on by itself; `protokube rollout status` shows how far it is",
            )
        if time.monotonic() - announced > ANNOUNCE_EVERY:
            announced = time.monotonic()
            announce()
        progress.say((waits() or [f"revision {revision.number}"])[0])
        time.sleep(EVERY)


def since(record: Rollout, number: int) -> list[Event]:
    """The events since this revision was last put in force, in their order: clocks of masters may differ."""
    begins = [at for at, each in enumerate(record.events) if each.text.startswith(f"revision {number} put in force")]
    return list(record.events[begins[-1] if begins else 0 :])


def stopped(record: Rollout) -> Refused:
    failure, back = record.failure, "is back on its former revision"
    assert failure is not None
    stays = [each.text for each in since(record, failure.revision) if each.text.startswith("stays on revision")]
    return Refused(
        f"revision {failure.revision} stopped at {failure.name}, which {stays[-1] if stays else back}",
        saw=failure.text,
        hint="the other masters were not changed after that; correct the spec and run `up` again, "
        "or return all of them with `protokube rollout undo`",
    )


def follow_local(progress: Progress, paths: Paths, store: Store, revision: Revision, timeout: float) -> Rollout:
    """Follow the rollout in a local cluster, which is reached through ports of this machine."""
    from protokube.cli.shared.cluster_view import waits
    from protokube.local import bringup
    from protokube.providers.clients.local import LocalClient

    endpoints = bringup.endpoints(LocalClient(paths.admin_socket, patience=30), revision.master.etcd[0])
    operator = bringup.etcd_client(paths, endpoints)
    try:
        return follow(
            progress,
            store,
            revision,
            timeout,
            waits=lambda: waits(paths),
            announce=lambda: announce(operator, revision.number),
        )
    finally:
        operator.close()
