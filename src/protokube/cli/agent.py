"""`protokube agent`: the daemon on each master."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from protokube.agent.firstboot import FirstBoot
    from protokube.agent.round import Round
    from protokube.launch.boot import LaunchDocument

LAUNCH = Path("/etc/protokube/agent.json")
STATUS = Path("/run/protokube/status.json")


@click.command("agent")
@click.option(
    "--config", "file", type=click.Path(path_type=Path), default=LAUNCH, show_default=True, help="Launch data, as JSON."
)
@click.option(
    "--status",
    type=click.Path(path_type=Path),
    default=STATUS,
    show_default=True,
    help="File that gets the status of each round.",
)
@click.option("--metrics", default="127.0.0.1:3990", show_default=True, help="Prometheus metrics; empty for none.")
@click.option("--once", is_flag=True, help="Run one round, print its status as JSON, and exit.")
def agent(file: Path, status: Path, metrics: str, once: bool) -> None:
    """Run the agent of a master: disks, names, etcd, components.

    It needs no Kubernetes API. What it does and what it waits for is in its log, one sentence for each round that did
    something, and in the status file, which `protokube status` and `protokube explain` read.

    \b
      protokube agent
      protokube agent --once
    """
    from protokube.launch.boot import read_launch_document

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    launch = read_launch_document(file)
    loop = build(launch, status, announce=not once)
    if once:
        from protokube.agent.status import snapshot
        from protokube.agent.sync import run_round

        round_ = run_round(loop.edges, loop.wanted)
        click.echo(json.dumps(snapshot(round_, number=1, took=0, pause=0), indent=2, sort_keys=True))
        return
    run(loop, metrics)


def build(launch: LaunchDocument, status: Path, *, announce: bool = True) -> Any:
    """Wire the edges that the launch data name into a loop. With `announce`, what that waits for is published."""
    import socket

    from protokube.agent.controlplane import nodekeys
    from protokube.agent.controlplane.apiserver import ApiWatch
    from protokube.agent.delivery import present
    from protokube.agent.edges import Edges
    from protokube.agent.etcd.agreement import AgreementWatch
    from protokube.agent.etcd.presence import LeasePresence
    from protokube.agent.etcd.spacewatch import SpaceWatch
    from protokube.agent.etcd.stalled_peers import StalledPeers
    from protokube.agent.firstboot import FirstBoot
    from protokube.agent.loop import Loop
    from protokube.agent.publish import LEAST, Publisher
    from protokube.agent.threads import workers
    from protokube.cli import wiring
    from protokube.host.clock import SystemClock
    from protokube.host.disks import HostDisks
    from protokube.host.routes import HostRoutes
    from protokube.host.superblock import ext4_uuid
    from protokube.providers import catalog
    from protokube.store.open import open_store

    root, clock = Path("/"), SystemClock()
    least = LEAST if launch.publish_every is None else launch.publish_every
    store = open_store(launch.store)
    wanted = present.at_start(root, launch.master, store)
    keys = Path(launch.pki)
    cloud = catalog.infrastructure(launch.infrastructure)
    names = catalog.names(launch.dns, root, store, wanted.cluster)
    etcd = wiring.etcd_clients(wanted, keys)
    if announce:
        first = FirstBoot(store, wanted.cluster, socket.gethostname(), clock, least=least)
        me = retry_until_answered(cloud.machines.me, first)
        first.over(me.id)
    else:
        me = retry_until_answered(cloud.machines.me)
    wanted = nodekeys.with_node(wanted, me)
    wake = threading.Event()
    kube = wiring.kube_api(wanted, keys)
    api = ApiWatch(wiring.kube_api(wanted, keys), wake.set)  # own connection: a slow request blocks only this thread
    is_serving = api.ready if wanted.components else None
    presence = LeasePresence(etcd[wanted.etcd[0].key], me, clock, wake.set, is_serving, wanted.revision)
    agreement = AgreementWatch(
        etcd, {each.key: [member.name for member in each.members] for each in wanted.etcd}, wake.set
    )
    space = SpaceWatch(etcd, clock, wake.set)
    peers = StalledPeers({each.pod.peer_port for each in wanted.etcd})
    publisher = Publisher(open_store(launch.store), etcd, clock, least=least)  # own connection, for the same reason
    edges = Edges(
        me=me, clock=clock, volumes=cloud.volumes, machines=cloud.machines, dns=names.provider, zone_mode=names.zone,
        disks=HostDisks(on_done=wake.set), units=wiring.units(launch.units), store=store, etcd=etcd,
        keys=wiring.machine_keys(store, wanted, keys, clock), presence=presence, agreement=agreement, space=space,
        root=root, uuid_of=lambda block: ext4_uuid(block.number), new_nonce=lambda: str(uuid.uuid4()),
        routes=HostRoutes() if wanted.pod_network else None, kube=kube if wanted.components else None,
        workers=workers(
            presence, agreement, space, peers, api if wanted.components else None, cloud.watch, wake.set, publisher
        ),
        launched=launch.master.revision, end_machine=wiring.end_machine(launch.units),
    )  # fmt: skip
    loop = Loop(edges, wanted, status=status, wake=wake)
    loop.publish = publisher.offer
    edges.unpublished = lambda: publisher.trouble
    loop.at_end = [edges.workers.stop, presence.retire]
    return loop


def retry_until_answered(call: Any, first: FirstBoot | None = None) -> Any:
    """Retry until the provider answers: the agent cannot start without this machine's identity.

    `first` is told why it waits, or why it ends.
    """
    import time

    from protokube.errors import Refused, TryLater

    pause = 0.05
    while True:
        try:
            return call()
        except TryLater as why:
            logging.getLogger("protokube.agent").info("waiting for the provider: %s", why.message)
            if first is not None:
                first.waiting(why)
            time.sleep(pause)
            pause = min(pause * 2, 5)
        except Refused as why:
            if first is not None:
                first.refused(why)
            raise


def serve_metrics(place: str) -> Callable[[Round, float], None] | None:
    """The function to call after each round; None if the port is in use, which must not stop the agent."""
    from protokube.agent.metrics import serve
    from protokube.errors import Refused

    try:
        return serve(place).after
    except Refused as why:
        logging.getLogger("protokube.agent").warning("going on without metrics: %s", why.message)
        return None


def run(loop: Any, metrics: str) -> None:
    from protokube.host.notify import notify
    from protokube.signals import on_signals

    on_signals({signal.SIGTERM: loop.stop, signal.SIGINT: loop.stop, signal.SIGHUP: loop.wake})
    threading.excepthook = loop.edges.workers.note_ended
    loop.edges.workers.start()
    if metrics:
        loop.after = serve_metrics(metrics) or loop.after
    loop.on_summary = lambda summary: notify(STATUS=summary[:500], WATCHDOG="1")
    notify(READY="1")
    loop.run()
    if loop.restart:
        # without giving up the lease: this master goes on within a second, and starts the jobs on disks again
        loop.edges.disks.close()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
    notify(STOPPING="1")
    for finish in loop.at_end:
        finish()
    if loop.leave and loop.edges.end_machine is not None:
        loop.edges.end_machine()
