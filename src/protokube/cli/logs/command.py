"""`protokube logs`: what hosts, etcd members and components log, together and as it comes."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.offered import offer_logs
from protokube.cli.shared.options import output_option
from protokube.errors import InvalidRequest

if TYPE_CHECKING:
    from protokube.cli.logs.output import Output
    from protokube.local.base.paths import Paths
    from protokube.local.logs.following import Follower

EVERY = 0.2
"""Seconds between two looks."""


@click.command()
@click.argument("names", metavar="[HOST|MEMBER|COMPONENT]...", nargs=-1, shell_complete=offer_logs)
@cluster_option
@click.option("-f", "--follow", "following", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--since", type=Duration(), help="Only lines of this last time, such as 5m or 1h30m.")
@click.option("-n", "--tail", type=click.IntRange(min=0), help="Only this many of the last lines.")
@output_option(default="text", choices=("text", "json"))
def logs(
    names: tuple[str, ...], cluster: str | None, following: bool, since: float | None, tail: int | None, output: str
) -> None:
    """Show and follow logs of hosts, members and components.

    Of a local cluster; without a name, it lists which logs there are. HOST is the agent of a host (its kubelet where
    there is no agent), and HOST/LOG another log of that host. MEMBER is an etcd member, such as main/a, on the host
    that holds its volume. COMPONENT is a log of every host: agent, etcd, kube-apiserver, kubelet. `cloud` is the daemon
    of the local cloud. Needs neither that daemon nor a Kubernetes API; pods of yours are for `kubectl logs`.

    Several logs are merged by their times, each line after the name of its host. -f goes on when a member moves to
    another host and when a host is replaced, and says so on stderr. With -o json, each line is one object.

    \b
      protokube logs                          # what there is
      protokube logs -f agent                 # the agents of all hosts
      protokube logs main/a --tail 20         # an etcd member, wherever it runs
      protokube logs kube-apiserver --since 5m
      protokube logs -f cloud
    """
    from protokube.cli.shared.cluster_view import find_cluster
    from protokube.local.logs.following import Follower
    from protokube.local.logs.known import read_known
    from protokube.local.logs.listing import beside, sources
    from protokube.local.logs.targets import resolve

    if not names and (following or since is not None or tail is not None):
        raise InvalidRequest("-f, --since and --tail need the name of a log", hint="protokube logs -f agent")
    paths = find_cluster(cluster)
    known = read_known(paths)
    if not names:
        show_list(paths, output)
        return
    every, cloud = sources(paths, known), beside(paths)
    now = time.time()
    follower = Follower(paths, [resolve(each, known, every, cloud) for each in dict.fromkeys(names)], known)
    try:
        show(follower, output, following=following, since=None if since is None else now - since, tail=tail)
    finally:
        follower.close()


def show(follower: Follower, output: str, *, following: bool, since: float | None, tail: int | None) -> None:
    from protokube.cli.logs.output import Output

    shown = Output(follower.trails, output)
    tell(follower.notes)
    anything = shown.write(follower.history(tail=tail, since=since))
    if following:
        follow(follower, shown)
        return
    anything |= shown.write(follower.finish())
    if not anything and tail != 0:
        tell([f"nothing was logged {'yet' if since is None else 'in that time'}"])


def follow(follower: Follower, shown: Output) -> None:
    """Until the reader of our output or the cluster is gone."""
    while not reader_is_gone():
        news = follower.news()
        if news is None:
            shown.write(follower.finish())
            tell([f"{follower.paths.cluster} was taken down"])
            return
        shown.write(news.lines)
        tell(news.notes)
        time.sleep(EVERY)


def tell(notes: Iterable[str]) -> None:
    with suppress(BrokenPipeError):
        for note in notes:
            click.echo(f"--- {note}", err=True)


def reader_is_gone() -> bool:
    """Whether nobody reads our standard output any more; a write would say so, and there may be nothing to write."""
    poller = select.poll()
    with suppress(OSError, ValueError):  # not a file of the system, in a test
        poller.register(sys.stdout.fileno(), 0)
        return any(events & select.POLLERR for _, events in poller.poll(0))
    return False


def show_list(paths: Paths, output: str) -> None:
    from protokube.cli.render.logs import render_list
    from protokube.cli.shared.screen import show_data, show_painted
    from protokube.local.logs.listing import listing

    tree = listing(paths)
    if output == "json":
        show_data(tree, output)
    else:
        show_painted(render_list(tree, time.time()))
