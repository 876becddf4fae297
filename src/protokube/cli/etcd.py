"""`protokube etcd`: list members, adopt volumes of kops, accept volumes that the agents refuse."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.cluster_view import cluster_option, seen_option
from protokube.cli.shared.offered import offer_volumes
from protokube.cli.shared.options import output_option
from protokube.errors import ExitCode, InvalidRequest, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from protokube.local.accepting import OlderCopy, RepairedDisk
    from protokube.view.cluster import ClusterView
    from protokube.view.values import DiskView, MemberView


@click.group()
def etcd() -> None:
    """List etcd members; adopt or accept etcd volumes.

    \b
      protokube etcd members
      protokube etcd members --store s3://bucket/clusters
      protokube etcd adopt vol-1
      protokube etcd accept vol-1 --older --epoch 1 --term 2 --commit 31
      protokube etcd accept vol-2 --repaired
    """


@etcd.command()
@cluster_option
@seen_option
@output_option(default="text", choices=("text", "json", "yaml"))
def members(cluster: str | None, store_url: str | None, output: str) -> int:
    """List the members of each etcd cluster, with the host and volume of each.

    The list is a linearizable read, as of `etcdctl member list`; exit code 3 if there is no quorum. With --store, it is
    the list that a master last read and published there.
    """
    from protokube.cli.render.members import members_tree, render_members
    from protokube.cli.render.status import source as source_lines
    from protokube.cli.shared.cluster_view import cluster_source
    from protokube.cli.shared.screen import show_data, show_painted

    with cluster_source(cluster, store_url) as source:
        view = source.look()
    tree = members_tree(view)
    if output == "text":
        show_painted(source_lines(view))
        show_painted(
            render_members(view) or [f"nothing is known of the members of {view.cluster} yet: protokube status"]
        )
    else:
        show_data(tree, output)
    return ExitCode.OK if tree and all(tree.values()) else ExitCode.TRY_LATER


@etcd.command()
@click.argument("volume", shell_complete=offer_volumes)
@cluster_option
@click.option("--yes", is_flag=True, help="Adopt the volume; without it, only show what is on it.")
@output_option(default="text", choices=("text", "json"))
def adopt(volume: str, cluster: str | None, yes: bool, output: str) -> int:
    """Adopt a volume of the original (kops) for a member of this cluster.

    Such a volume has etcd's data where the original keeps it, but no identity file, so the agents refuse it. This
    shows what is on it. With --yes it writes the identity; the master that holds the volume then starts etcd on it.

    \b
      protokube etcd adopt vol-1f2e3d4c
      protokube etcd adopt vol-1f2e3d4c --yes
    """
    from protokube.cli.render.members import found_tree, render_found
    from protokube.cli.shared.cluster_view import find_cluster
    from protokube.cli.shared.screen import show_painted
    from protokube.local.adopting import carry_out, read_layout
    from protokube.local.view.look import look
    from protokube.members.adopt import Adopt, decide_adopt
    from protokube.members.identity import Nominated
    from protokube.members.start_values import Refuse
    from protokube.store.file import FileStore

    paths = find_cluster(cluster)
    view = look(paths)
    disk, member = find_volume(view, volume)
    point = mounted_at(view, disk)
    found = read_layout(point)
    key, _, short = disk.member.partition("/")
    tags = Nominated(cluster=paths.cluster, etcd_cluster=key, member=short, volume=volume)
    decision = decide_adopt(found, tags, member.name, view.generations.get(key), disk.mark, disk.epoch)
    done = []
    if isinstance(decision, Adopt) and yes:
        done = carry_out(decision, point, FileStore(paths.store), paths.cluster)
    if output == "json":
        click.echo(json.dumps(found_tree(volume, found, decision, done), indent=2))
    else:
        show_painted(render_found(volume, key, found, decision))
        show_painted(done or (["hint: --yes adopts it"] if isinstance(decision, Adopt) else []))
    return ExitCode.REFUSED if isinstance(decision, Refuse) else ExitCode.OK


@etcd.command()
@click.argument("volume", shell_complete=offer_volumes)
@click.option("--older", is_flag=True, help="The disk is an older copy of itself; use its data anyway.")
@click.option("--epoch", type=click.IntRange(0), help="With --older: the epoch on the disk, as `status` shows it.")
@click.option("--term", type=click.IntRange(0), help="With --older: the term of the log on the disk.")
@click.option("--commit", type=click.IntRange(0), help="With --older: the commit index of the log on the disk.")
@click.option("--repaired", is_flag=True, help="The disk failed several times, and is repaired now.")
@cluster_option
@click.option("--yes", is_flag=True, help="Accept the disk; without it, only show what would happen.")
@output_option(default="text", choices=("text", "json"))
def accept(
    volume: str,
    older: bool,
    epoch: int | None,
    term: int | None,
    commit: int | None,
    repaired: bool,
    cluster: str | None,
    yes: bool,
    output: str,
) -> int:
    """Start a member on a disk that the agents refuse: an older copy, or one that failed repeatedly.

    With --older, all writes after the copy was made may be lost: use it only if no newer disk of the member exists.
    --epoch, --term and --commit identify exactly one state of the disk; only that state is accepted, and only once.

    With --repaired, the faults of the last hour are cleared, and the disk is checked and mounted again.

    \b
      protokube etcd accept vol-1f2e3d4c --older --epoch 1 --term 2 --commit 31
      protokube etcd accept vol-1f2e3d4c --older --epoch 1 --term 2 --commit 31 --yes
      protokube etcd accept vol-1f2e3d4c --repaired --yes
    """
    from protokube.cli.shared.cluster_view import find_cluster
    from protokube.cli.shared.screen import show_painted
    from protokube.local.accepting import find_broken, find_older
    from protokube.local.view.look import look
    from protokube.members.generation import Accepted
    from protokube.store.file import FileStore

    figures = {"--epoch": epoch, "--term": term, "--commit": commit}
    _check_acceptance(older, repaired, figures)
    paths = find_cluster(cluster)
    view = look(paths)
    disk, _ = find_volume(view, volume)
    store = FileStore(paths.store)
    found: OlderCopy | RepairedDisk
    if repaired:
        found = find_broken(disk, store, paths.cluster)
    else:
        found = find_older(view, disk, Accepted(epoch=epoch or 0, term=term or 0, commit=commit or 0))
    if yes:
        found.accept(store, paths.cluster)
    if output == "json":
        click.echo(json.dumps(found.tree(done=yes), indent=2))
    else:
        show_painted(found.lines(done=yes))
    return ExitCode.OK


def _check_acceptance(older: bool, repaired: bool, figures: Mapping[str, int | None]) -> None:
    """Raise InvalidRequest unless the options name exactly one reason, with what it needs."""
    missing = [name for name, value in figures.items() if value is None]
    if older == repaired:
        raise InvalidRequest("give either --older or --repaired", hint="`protokube status` names the one that fits")
    if older and missing:
        raise InvalidRequest(
            f"--older also needs {', '.join(missing)}", hint="the figures on the disk, as `protokube status` shows them"
        )
    if repaired and len(missing) < len(figures):
        given = ", ".join(name for name in figures if name not in missing)
        raise InvalidRequest(f"{given} belongs to --older", hint="--repaired needs no figures")


def find_volume(view: ClusterView, volume: str) -> tuple[DiskView, MemberView]:
    from protokube.nearest import no_such

    disk = view.disk(volume)
    member = view.member(disk.member) if disk else None
    if disk is None or member is None:
        raise no_such(
            "volume", volume, [each.id for each in view.disks], where=f"in {view.cluster}", hint="protokube status"
        )
    return disk, member


def mounted_at(view: ClusterView, disk: DiskView) -> Path:
    """The mount point of the volume in its holder's mount namespace, as seen from this process."""
    from protokube.agent.volume.mounted_volumes import point_of

    host = view.host(disk.attached_to)
    if host is None or host.pid is None:
        raise TryLater(
            f"no host has {disk.id} mounted", saw=f"attached to {disk.attached_to or 'nobody'}", hint="protokube status"
        )
    point = Path(f"/proc/{host.pid}/root{point_of(disk.id)}")
    if not os.path.ismount(point):  # unlike Path.is_mount, returns False without permission
        raise TryLater(f"{disk.id} is not mounted on {host.name} yet", hint=f"protokube explain volume {disk.id}")
    return point
