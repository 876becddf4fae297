"""`protokube shell`: a shell in a host, or one command for scripts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.offered import offer_entered
from protokube.errors import Refused

if TYPE_CHECKING:
    from protokube.local.logs.known import Known, KnownHost

COMMAND = "protokube.command"
END_OF_OPTIONS = "--"


class WithCommand(click.Command):
    """Keeps what follows `--` apart: else the first word of it would be taken for the host."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if END_OF_OPTIONS in args:
            at = args.index(END_OF_OPTIONS)
            args, ctx.meta[COMMAND] = args[:at], args[at + 1 :]
            if not ctx.meta[COMMAND] and not ctx.resilient_parsing:
                raise click.UsageError("no command after `--`", ctx)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@click.command(cls=WithCommand)
@click.argument("host", required=False, shell_complete=offer_entered)
@cluster_option
@click.pass_context
def shell(context: click.Context, host: str | None, cluster: str | None) -> int:
    """Open a shell in a host, or run a command there.

    Runs in a host of a local cluster, with its root, processes, network, PATH and environment. The name of an etcd
    member stands for the host that holds it; without a name it is the first master, and is said. Ends with the exit
    code of the command, or 128 and the number of the signal that ended it. There is a terminal if standard input and
    output are one.

    \b
      protokube shell
      protokube shell master-a-1x2y
      protokube shell main/a -- cat /etc/kubernetes/config/etcd.yaml
      tar c . | protokube shell -- tar x -C /srv
    """
    from protokube.cli.shared.cluster_view import find_cluster
    from protokube.cli.shared.root import need_root
    from protokube.local.host.entering import CannotRun, not_running, run_inside
    from protokube.local.logs.known import read_known

    need_root()
    paths = find_cluster(cluster)
    chosen = choose(host, read_known(paths))
    if chosen.pid is None or chosen.started is None:  # one that was declared dead may still run
        raise not_running(chosen.name)
    if host != chosen.name:
        click.echo(f"--- in {chosen.name}", err=True)
    words = context.meta.get(COMMAND, [])
    try:
        ended = run_inside(chosen.name, chosen.pid, chosen.started, words, with_terminal=os.isatty(0) and os.isatty(1))
    except CannotRun as why:
        click.echo(f"error: {why}", err=True)
        return why.status
    if ended.host_is_gone:
        click.echo(f"--- {chosen.name} is gone", err=True)
    return ended.code


def choose(name: str | None, known: Known) -> KnownHost:
    """The named host, the one that holds the named member, or the first master that runs. Pure."""
    from protokube.local.logs.targets import forms
    from protokube.nearest import no_such

    if name is None:
        found = sorted(known.living, key=lambda each: (not each.master, each.name))
        if not found:
            raise Refused("no host of this cluster runs", hint="protokube status", code="not-running")
        return found[0]
    members = {form: holder for member, holder in known.members.items() for form in forms(member)}
    if (holder := members.get(name)) is not None:
        if not holder.now:
            raise Refused(f"nobody holds {name} now", hint="protokube status", code="not-running")
        name = holder.now
    if (host := known.host(name)) is not None:
        return host
    raise no_such("host", name, [each.name for each in known.living], also=members, hint="protokube status")
