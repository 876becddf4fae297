"""`protokube dns-controller`: publish DNS records for annotated objects."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from protokube.cli.dns.options import object_options, ttl_option
from protokube.cli.dns.zones import dns_options, open_zones
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.options import output_option
from protokube.errors import InvalidRequest, TryLater
from protokube.records.names import normalise

if TYPE_CHECKING:
    from protokube.controllers.dns.assemble import Parts
    from protokube.controllers.dns.controller import Round

LIST_SECONDS = 120.0


@click.command("dns-controller")
@dns_options
@object_options
@click.option(
    "--lease",
    metavar="NAME",
    default="protokube-dns-controller",
    show_default=True,
    help="The Lease in kube-system for leader election. Controllers for other zones or objects need another one.",
)
@click.option("--lease-seconds", type=Duration(1), default="15s", hidden=True, help="The duration of the Lease.")
@click.option(
    "--silence", type=Duration(1), default="75s", hidden=True, help="A watch that is silent for so long is dead."
)
@ttl_option
@click.option(
    "--grace",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long a value stays after no object asks for it any more.",
)
@click.option("--force", is_flag=True, help="Remove more values at once than is safe; check with --dry-run first.")
@click.option(
    "--adopt", metavar="NAME", multiple=True,
    help="Take over the unowned values of this name, if an object asks for it. Can be repeated.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be written.")
@click.option("--once", is_flag=True, help="Run one round, print it, and exit; values go without waiting for --grace.")
@click.option("--metrics", default="127.0.0.1:3991", show_default=True, help="Prometheus metrics; empty for none.")
@click.option(
    "--events/--no-events", default=True, show_default=True, help="Report to the owners of objects by Events."
)
@click.option(
    "--conditions", is_flag=True,
    help="Report in a condition of pods and services too; needs the right to patch their status.",
)  # fmt: skip
@output_option(default="text", choices=("text", "json", "yaml"))
def dns_controller(
    provider: str | None, zones: tuple[str, ...], server: str | None, key_file: Path | None, hosts_file: Path,
    endpoint: str | None, kubeconfig: Path | None, context: str | None, watch_namespace: str, watch_ingress: bool,
    owner: str | None, lease: str, lease_seconds: float, silence: float, ttl: int, grace: float, force: bool,
    adopt: tuple[str, ...], dry_run: bool, once: bool, metrics: str, events: bool,
    conditions: bool, output: str,
) -> None:  # fmt: skip
    """Publish DNS records for annotated objects.

    Pods with hostNetwork, nodes and services ask for names with the annotations dns.alpha.kubernetes.io/external and
    dns.alpha.kubernetes.io/internal. A TXT record next to each name records the owner of its values; values of others
    are never changed. Several replicas can run: the leader writes.

    \b
      protokube dns-controller --dns aws-route53 --zone example.com
      protokube dns-controller --dns rfc2136 --server 10.0.0.2 --key-file dns.key --zone example.com
      protokube dns-controller --dns aws-route53 --once --dry-run
    """
    from protokube.controllers.dns.assemble import Options, assemble

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    found = open_zones(
        provider, zones, server=server, key_file=key_file, hosts_file=hosts_file, endpoint=endpoint, read_only=dry_run
    )
    source = click.get_current_context().get_parameter_source("grace")
    if once and source is click.core.ParameterSource.COMMANDLINE:
        raise InvalidRequest("--once does not wait, so it has no grace time", hint="leave --grace out")
    options = Options(
        kubeconfig=kubeconfig, context=context, namespace=watch_namespace, ingresses=watch_ingress, owner=owner,
        lease=lease, lease_seconds=lease_seconds, silence=silence, ttl=ttl,
        grace=0.0 if once else grace, forced=force, dry_run=dry_run,
        adopt=frozenset(map(normalise, adopt)), alone=once or dry_run,
        metrics="" if once else metrics, events=events,
        conditions=conditions,
    )  # fmt: skip
    if not once:
        # until `run` sets its own handler: as PID 1 of a pod, the default would ignore the signal
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    parts = assemble(options, found, zones)
    if not once:
        run(parts)
        return
    from protokube.cli.render.dns_round import lines, tree
    from protokube.cli.shared.screen import show_data, show_painted

    done = one_round(parts)
    if output == "text":
        show_painted(lines(done, dry_run=dry_run))
    else:
        show_data(tree(done, dry_run=dry_run), output)
    if done.waits or any(outcome.trouble for outcome in done.zones):
        raise TryLater(done.waits or "a zone could not be read or written; see above")


def run(parts: Parts) -> None:
    """Run until a signal."""
    from protokube.host.notify import notify
    from protokube.signals import on_signals

    stop = threading.Event()

    def leave() -> None:
        stop.set()
        parts.controller.wake()
        for each in parts.background:
            each.wake()

    on_signals({signal.SIGTERM: leave, signal.SIGINT: leave, signal.SIGHUP: parts.controller.wake})
    electing = threading.Thread(target=parts.election.run, args=(stop,), daemon=True)
    electing.start()
    watching = parts.watching.start(stop)
    for each in parts.background:
        threading.Thread(target=each.run, args=(stop,), daemon=True).start()
    notify(READY="1")
    parts.controller.run(stop)
    notify(STOPPING="1")
    electing.join(5)  # it releases the Lease, which takes one more request
    parts.session.close()
    for thread in watching:
        thread.join(2)


def one_round(parts: Parts) -> Round:
    """List everything once, then run one round."""
    stop = threading.Event()
    watching = parts.watching.start(stop)
    try:
        parts.ready.wait(LIST_SECONDS)
        return parts.controller.round()
    finally:
        stop.set()
        parts.session.close()
        for thread in watching:
            thread.join(2)
