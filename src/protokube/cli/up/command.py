"""`protokube up`: a self-healing control plane on one machine: three masters, etcd on floating disks, names in DNS."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from protokube.cli.shared import rollout
from protokube.cli.shared.completing import complete_here
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.offered import offer_clusters
from protokube.cli.shared.options import Choice, show_warnings
from protokube.cli.shared.progress import Progress
from protokube.cli.shared.root import need_root
from protokube.cli.shared.upgrade import Target, deliver
from protokube.cli.up.anew import beginning_anew, refuse_change
from protokube.cli.up.change import (
    find_former,
    keep_first,
    plan_change,
    refuse_fixed,
    refuse_renamed,
    show_plan,
)
from protokube.cli.up.choosing import (
    default_spec,
    find_coredns,
    find_etcd,
    find_kubernetes,
    need_kubernetes,
    read_default_spec,
    read_spec,
)
from protokube.cli.up.existing import (
    ClusterShape,
    existing_cluster,
    keep_earlier_options,
    kept_spec,
    members_of,
    need_the_same,
)
from protokube.cli.up.exposing import ToExpose, check_exposed, expose_all, expose_option
from protokube.cli.up.outside import configure_outside, summary
from protokube.cli.up.waiting import await_nodes, await_quorum, await_ready, for_a_person
from protokube.errors import InvalidRequest, Refused


@click.command("up")
@click.argument("spec", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--cluster",
    "name",
    default="laptop",
    show_default=True,
    shell_complete=offer_clusters,
    help="The cluster's name, if no SPEC names it.",
)
@click.option("--masters", type=click.IntRange(1, 9), help="Number of masters, without a SPEC.  [default: 3]")
@click.option("--events", is_flag=True, help="Run a second etcd cluster for events only.")
@click.option(
    "--kubernetes",
    "release",
    default="",
    metavar="VERSION",
    help="The version; `none` for only etcd and DNS.  [default: the spec's, or the newest on this machine]",
)
@click.option("--kubelet", is_flag=True, help="Run the real kubelet on containerd: hosts are nodes that run pods.")
@click.option(
    "--isolated/--no-isolated",
    default=None,
    envvar="PROTOKUBE_ISOLATED",
    show_envvar=True,
    help="Whether hosts reach only each other.  [default: as before; hosts of a new cluster reach the outside]",
)
@expose_option
@click.option("--dry-run", is_flag=True, help="Show what would change on a running cluster, and stop there.")
@click.option("--yes", is_flag=True, help="Restart the only master, though nothing answers meanwhile.")
@click.option("--timeout", type=Duration(), default="5m", show_default=True, help="Longest wait for the cluster.")
@click.option("-o", "--output", type=Choice(["text", "json"]), default="text", help="Output format.")
@beginning_anew
def up(
    spec: Path | None,
    name: str,
    masters: int | None,
    events: bool,
    release: str,
    kubelet: bool,
    isolated: bool | None,
    exposed: list[ToExpose],
    dry_run: bool,
    yes: bool,
    timeout: float,
    output: str,
) -> None:
    """Bring up a self-healing control plane on this machine.

    Creates hosts, disks, DNS names, an etcd quorum on floating disks and, if its binaries are on this machine,
    Kubernetes: see `protokube get kubernetes --help`. Needs root. All state is in one folder and in separate
    namespaces; `protokube down` removes all of it. `up` is idempotent: run again, it completes what was interrupted and
    changes nothing that is in order; options that are not given keep their earlier values. An existing cluster keeps
    its masters and its etcd members. Its etcd is the version for its Kubernetes, or a suitable one on this machine;
    PROTOKUBE_ETCD_BIN names a folder of your own.

    A SPEC that differs from that of a running cluster is shown as a plan and then rolled out: what only needs a file is
    written, what needs a restart goes one master after the other. If a component does not come up, the rollout stops
    there and that master returns to the former revision; `protokube rollout` shows it, and returns to earlier ones.
    Another version of Kubernetes or etcd is such a change, one minor version at a time: etcd first, after a snapshot
    that was restored and started with both versions, then the control plane, then kubelets.

    Hosts reach the outside through a user-space process, so that pods can pull images; your own network is not changed.
    With --isolated they reach only each other; on a running cluster, the option changes that.

    \b
      protokube up
      protokube up --cluster second --masters 1
      protokube up --kubernetes none
      protokube up --kubelet
      protokube up --isolated
      protokube up --expose 8080:web:80
      protokube up examples/local.yaml
      protokube up changed.yaml --dry-run
    """
    from protokube.launch import prepare
    from protokube.launch.addons import all_addons
    from protokube.launch.cloud import cloud_config
    from protokube.launch.derive import from_config
    from protokube.local import bringup, unborn
    from protokube.local.base import client_files, tools
    from protokube.local.base.paths import Paths
    from protokube.local.node import inotify
    from protokube.local.node.kubehost import Nodes, Programs, with_nodes
    from protokube.providers import catalog
    from protokube.providers.clients.local import LocalClient
    from protokube.store.addons import keep_addons, read_manifest
    from protokube.store.open import open_store

    progress = Progress(quiet=output == "json")
    with progress.step("this machine has what it takes"):
        need_root()
        need_tools(tools.missing_tools())
    with progress.step("Kubernetes") as step:
        given = read_spec(spec) if spec else kept_spec(name)
        parsed = given[0] if given else None
        if spec and parsed:
            check_conflicting_options(parsed.name, name, masters, events=events)
            refuse_renamed(spec, parsed.name)
        before = existing_cluster(parsed.name if parsed else name)
        release, kubelet = keep_earlier_options(before, parsed, release, kubelet)
        kubernetes = find_kubernetes(parsed, release)
        need_kubernetes(kubernetes, kubelet=kubelet)
        step.text = f"Kubernetes {kubernetes.version}" if kubernetes else "no Kubernetes: etcd and names alone"
    release = kubernetes.version if kubernetes else ""
    parsed, texts = given or read_default_spec(default_spec(name, masters or 3, events))
    with progress.step("etcd") as step:
        etcd = find_etcd(parsed, before, release, progress)
        step.text = f"etcd {etcd.version}"
    with progress.step("spec to complete configuration") as step:
        config = complete_here(parsed, etcd.version, release)
        step.text = f"complete configuration of {config.name}"
    show_warnings(config.warnings)
    paths = Paths.of(config.name)
    check_exposed(exposed, paths, kubernetes=kubernetes is not None)
    former = find_former(open_store(f"file://{paths.store}"), config.name) if before else None
    refuse_fixed(former, config, kubernetes=kubernetes is not None)
    wanted = from_config(config, kubernetes=kubernetes is not None, nodes=kubelet)
    now = ClusterShape.of(release or "none", kubelet, members_of(wanted.etcd))
    need_the_same(config.name, before, now, masters=None if spec else masters, events=events and not spec)
    wanted = with_nodes(wanted, config) if kubernetes and kubelet else wanted
    change = plan_change(paths, open_store(f"file://{paths.store}"), former, config, wanted) if former else None
    refuse_change(paths, change, dry_run=dry_run)
    show_plan(change, former, wanted, output, dry_run=dry_run)
    if dry_run:
        return
    if change:
        rollout.confirm(change, config.name, yes=yes)
    nodes = None
    if kubernetes and kubelet:
        with progress.step("container runtime and images") as step:
            coredns = find_coredns(config, progress)
            programs = Programs(kubernetes=kubernetes.folder, etcd=etcd.etcd, coredns=coredns)
            nodes = Nodes.of(config, programs, bringup.CACHE)
            if before is None and (problem := inotify.shortage(len(wanted.etcd[0].members))):
                show_warnings([problem])
            step.text = f"containerd, and {len(nodes.runtime.images)} images"
    with progress.step(f"state in {paths.root}"):
        paths.create()
        unborn.hold(paths)
        store = open_store(f"file://{paths.store}")
        prepare.prove_store(store, wanted)
        keep_first(store, former, config, texts)
        if kubernetes:
            wanted = replace(wanted, addons=keep_addons(store, config.name, all_addons(config, read_manifest)))
        bringup.keep_programs(paths, wanted, etcd, kubernetes.folder if kubernetes else None)
        prepare.ensure_authorities(store, wanted)
        bringup.write_client(store, paths, wanted)
        key = prepare.tsig_key(store, wanted.cluster)
    with progress.step("the local cloud") as step:
        step.text = f"the local cloud {'started' if bringup.start_daemon(paths) else 'runs already'}"
        admin = LocalClient(paths.admin_socket, patience=catalog.OPERATOR_PATIENCE)
        asked = cloud_config(config)
        cloud, zone = catalog.operator({"kind": asked.kind, "socket": str(paths.admin_socket)}), asked.dns_zone
        admin.call("set_dns", zones=[zone], keys=[{"name": key.name, "secret": key.secret}])
    with progress.step("the way outside") as step:
        outside = configure_outside(admin, config, isolated)
        step.text = summary(outside)
    expose_all(progress, admin, exposed)
    with progress.step("disks") as step:
        volumes = prepare.create_founders(cloud.volumes, wanted, bringup.ZONE)
        for each in wanted.etcd:
            prepare.record_generation(store, wanted.cluster, each, volumes)
        step.text = f"{len(volumes)} disks, and the generation records"
    target = Target(
        config=config, wanted=wanted, texts=texts, source=str(spec.resolve()) if spec else "", etcdctl=etcd.etcdctl,
        images=nodes.runtime.images if nodes else {},
    )  # fmt: skip
    revision = deliver(progress, paths, store, admin, former.planned if former else None, target, timeout)
    wanted = replace(wanted, revision=revision.number)
    with progress.step("hosts") as step:
        launch = bringup.launch_data(wanted, zone)
        folders = [bringup.write_launcher(paths), etcd.etcd.parent, *([kubernetes.folder] if kubernetes else [])]
        plain = bringup.template(launch, folders, paths)
        prepare.ensure_groups(cloud.groups, wanted, nodes.template(plain, wanted, paths) if nodes else plain)
        step.text = f"{len(wanted.etcd[0].members)} hosts"
    with progress.step("quorum") as step:
        await_quorum(progress, paths, admin, store, wanted, timeout)
        step.text = "quorum; the creation of the cluster is closed"
    with progress.step("ready") as step:
        endpoints = [bringup.endpoints(admin, each) for each in wanted.etcd]
        variables = client_files.environment(paths, endpoints[0])
        if kubernetes:
            server = bringup.api_server(admin, wanted)
            variables["KUBECONFIG"] = str(bringup.write_kubeconfig(store, paths, wanted, server))
        file = client_files.write_environment(paths, variables)
        view = await_ready(progress, paths, timeout)
        apis = sum(each.serving is True for each in view.agents)
        step.text = f"{len(view.members)} healthy members{f', {apis} API servers' if kubernetes else ''}"
    if nodes:
        with progress.step("nodes") as step:
            step.text = f"{await_nodes(progress, paths, len(wanted.etcd[0].members), timeout)} nodes ready"
    result = {"cluster": config.name, "seconds": round(time.monotonic() - progress.began, 2), "env": variables,
            "envFile": str(file), "etcd": etcd.version, "etcdctl": str(etcd.etcdctl), "dns": bringup.dns_address(admin),
            "kubernetes": kubernetes.version if kubernetes else None, "revision": revision.number,
            "kubelet": nodes is not None, "outside": outside,
            "kubectl": str(kubernetes.folder / "kubectl") if kubernetes else None}  # fmt: skip
    if output == "json":
        click.echo(json.dumps(result, indent=2))
    else:
        click.echo(next_steps(result, wanted.etcd[0].members[0].dns_name))
    if view.person:
        raise for_a_person(view)


def check_conflicting_options(called: str, name: str, masters: int | None, *, events: bool) -> None:
    """InvalidRequest for options that conflict with the SPEC: they must not be ignored silently."""
    typed = click.get_current_context().get_parameter_source("name") is click.core.ParameterSource.COMMANDLINE
    options = {f"--cluster {name}": typed and name != called, "--masters": masters is not None, "--events": events}
    if given := [option for option, is_given in options.items() if is_given]:
        raise InvalidRequest(f"{', '.join(given)}: the spec of {called} sets that", hint="set it in the spec")


def need_tools(missing: list[tuple[str, str]]) -> None:
    if missing:
        raise Refused(
            f"this machine lacks {', '.join(program for program, _ in missing)}",
            hint=f"apt-get install {' '.join(sorted({package for _, package in missing}))}",
            code="missing-program",
        )


def next_steps(result: dict[str, Any], member: str) -> str:
    server, _, port = result["dns"].rpartition(":")
    ask = "get nodes" if result.get("kubelet") else "get --raw '/readyz?verbose'"
    kubectl = f"  {result['kubectl']} {ask}\n" if result["kubectl"] else ""
    return f"""
{result["cluster"]} is up, after {result["seconds"]} s. What to type next:

  protokube status                     # hosts, disks, members, names, and what is waited for
  . {result["envFile"]}
{kubectl}  {result["etcdctl"]} endpoint status -w table
  {result["etcdctl"]} put hello world && {result["etcdctl"]} get hello
  dig +short @{server} -p {port} {member}
  protokube drill kill-master          # kill one, and watch it heal
  protokube down                       # take all of it away"""
