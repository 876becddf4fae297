"""`protokube up`: a self-healing control plane on one machine: three masters, etcd on floating disks, names in DNS."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click

from protokube.cli.shared import rollout
from protokube.cli.shared.completing import complete_here
from protokube.cli.shared.contexts import UserContext, merge_context, merge_option, switch_option
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.offered import offer_clusters
from protokube.cli.shared.options import Choice, show_warnings
from protokube.cli.shared.progress import Progress
from protokube.cli.shared.root import need_root
from protokube.cli.shared.templates import keep_hosts
from protokube.cli.shared.upgrade import Target, deliver
from protokube.cli.up.adding import check_addition, hosts_of
from protokube.cli.up.anew import beginning_anew, refuse_change
from protokube.cli.up.change import (
    find_former,
    keep_first,
    plan_change,
    refuse_fixed,
    show_plan,
)
from protokube.cli.up.choosing import (
    find_coredns,
    find_etcd,
)
from protokube.cli.up.existing import (
    ClusterShape,
    existing_cluster,
    keep_earlier_release,
    members_of,
    need_the_same,
    need_unchanged,
)
from protokube.cli.up.exposing import ToExpose, check_exposed, expose_all, expose_option
from protokube.cli.up.kubelets import choose_kubelets, refuse_early
from protokube.cli.up.kubernetes import BUILD, NONE, bring, choose_kubernetes, offered_versions
from protokube.cli.up.next_steps import kubectl_of, show
from protokube.cli.up.outside import configure_outside, summary
from protokube.cli.up.spec_input import read_input
from protokube.cli.up.waiting import await_nodes, await_quorum, await_ready, for_a_person
from protokube.errors import Refused

DEFAULT_NAME = "laptop"


@click.command("up")
@click.argument("spec", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--cluster",
    "name",
    default=DEFAULT_NAME,
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
    shell_complete=offered_versions,
    help="The version; `build` builds it from Go modules; `none`: only etcd and DNS.  [default: the spec's, the newest "
    "on this machine, or the official release]",
)
@click.option(
    "--kubelet/--no-kubelet",
    default=None,
    help="Run the real kubelet on containerd: hosts are nodes that run pods.  [default: as before; where it can run]",
)
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
@merge_option
@switch_option
@click.option("--timeout", type=Duration(), default="5m", show_default=True, help="Longest wait for the cluster.")
@click.option("-o", "--output", type=Choice(["text", "json"]), default="text", help="Output format.")
@beginning_anew
def up(
    spec: Path | None,
    name: str,
    masters: int | None,
    events: bool,
    release: str,
    kubelet: bool | None,
    isolated: bool | None,
    exposed: list[ToExpose],
    dry_run: bool,
    yes: bool,
    merging: bool,
    switch: bool,
    timeout: float,
    output: str,
) -> None:
    """Bring up a self-healing control plane on this machine.

    Creates hosts, disks, DNS names, an etcd quorum on floating disks, and Kubernetes with a node on each host. Needs
    root. All state is in one folder and in separate namespaces; `protokube down` removes all of it. `up` is idempotent:
    run again, it completes what was interrupted and changes nothing that is in order; options that are not given keep
    their earlier values. An existing cluster keeps its masters and its etcd members. Its etcd is the version for its
    Kubernetes, or a suitable one on this machine; PROTOKUBE_ETCD_BIN names a folder of your own.

    Kubernetes is the newest version on this machine; if there is none, the official release is downloaded
    (PROTOKUBE_KUBERNETES_MIRROR names a mirror) and kept in /var/cache/protokube, or in the folder that PROTOKUBE_CACHE
    names. If no release can be reached within five seconds, the cluster runs without Kubernetes, and `up` prints the
    command that adds it. `--kubernetes build` needs no release: it builds one from Go modules, in about ten minutes.

    Hosts run the real kubelet where control groups, file system and Debian packages allow it; if not, `up` says why,
    and a built-in runner starts the control plane as static pods, without nodes. Masters run other pods, too, unless
    the spec taints their instance group.

    A SPEC that differs from that of a running cluster is shown as a plan and then rolled out: what only needs a file is
    written, what needs a restart goes one master after the other. If a component does not come up, the rollout stops
    there and that master returns to the former revision; `protokube rollout` shows it, and returns to earlier ones.
    Another version of Kubernetes or etcd is such a change, one minor version at a time: etcd first, after a snapshot
    that was restored and started with both versions, then the control plane, then kubelets.

    Hosts reach the outside through a user-space process, so that pods can pull images; your own network is not changed.
    With --isolated they reach only each other; on a running cluster, the option changes that.

    A cluster that runs with etcd alone gets Kubernetes by --kubernetes VERSION, and one without kubelets gets them by
    --kubelet: the control plane starts on the hosts that run, then each host is replaced in its turn. Its keys stay.

    With Kubernetes, a context is merged into your kubeconfig and made the current one, so that `kubectl` reaches the
    cluster; `down` takes it out again, and restores the former one. KUBECONFIG is honoured.

    \b
      protokube up
      protokube up --cluster second --masters 1
      protokube up --kubernetes none
      protokube up --kubernetes build
      protokube up --no-kubelet
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
    from protokube.local.base import client_files, ourselves, tools
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
        ourselves.prove_kept()
        need_tools(tools.missing_tools())
        tools.prove_mounted_root()
    with progress.step("Kubernetes") as step:
        parsed, texts = read_input(spec, name, masters, events=events)
        before = existing_cluster(parsed.name)
        refuse_early(kubelet, before, parsed.name)
        kept = keep_earlier_release(before, parsed, release)
        chosen = choose_kubernetes(parsed, before, kept, bringup.CACHE, progress, needed=bool(kubelet), dry_run=dry_run)
        step.text = str(chosen)
    option, release = release, chosen.version
    with progress.step("etcd") as step:
        etcd = find_etcd(parsed, before, release, progress, later=chosen.later)
        step.text = f"etcd {etcd.version}"
    with progress.step("spec to complete configuration") as step:
        config = complete_here(parsed, etcd.version, release)
        step.text = f"complete configuration of {config.name}"
    show_warnings(config.warnings)
    paths = Paths.of(config.name)
    check_exposed(exposed, paths, kubernetes=bool(release))
    former = find_former(open_store(f"file://{paths.store}"), config.name) if before else None
    refuse_fixed(former, config, kubernetes=bool(release))
    kubelets = choose_kubelets(kubelet, before, chosen, config, bringup.CACHE, progress, dry_run=dry_run)
    wanted = from_config(config, kubernetes=bool(release), nodes=kubelets.run)
    now = ClusterShape.of(release or "none", kubelets.run, members_of(wanted.etcd))
    need_the_same(config.name, before, now, masters=None if spec else masters, events=events and not spec)
    wanted = with_nodes(wanted, config) if kubelets.run else wanted
    check_addition(paths, open_store(f"file://{paths.store}"), former, wanted)
    change = plan_change(paths, open_store(f"file://{paths.store}"), former, config, wanted) if former else None
    refuse_change(paths, change, dry_run=dry_run)
    show_plan(change, former, wanted, output, dry_run=dry_run)
    if dry_run:
        return
    if change:
        rollout.confirm(change, config.name, yes=yes)
    kubernetes = bring(chosen, bringup.CACHE, progress)
    nodes = None
    if kubernetes and kubelets.run:
        with progress.step("container runtime and images") as step:
            coredns = find_coredns(config, progress, build=option == BUILD)
            programs = Programs(kubernetes=kubernetes.folder, etcd=etcd.etcd, coredns=coredns)
            nodes = Nodes.of(config, programs, bringup.CACHE)
            shortage = inotify.shortage(len(wanted.etcd[0].members)) if before is None else None
            show_warnings(filter(None, (nodes.runtime.unprepared, shortage)))
            step.text = f"containerd, and {len(nodes.runtime.images)} images"
    with progress.step(f"state in {paths.root}"):
        unborn.hold(paths)
        need_unchanged(config.name, before)
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
    folders = [bringup.write_launcher(paths), etcd.etcd.parent, *([kubernetes.folder] if kubernetes else [])]
    make_hosts = hosts_of(cloud.groups, paths, zone, folders, nodes)
    target = Target(
        config=config, wanted=wanted, texts=texts, source=str(spec.resolve()) if spec else "", etcdctl=etcd.etcdctl,
        images=nodes.runtime.images if nodes else {}, make_hosts=make_hosts,
    )  # fmt: skip
    revision = deliver(progress, paths, store, admin, former.planned if former else None, target, timeout)
    wanted = replace(wanted, revision=revision.number)
    with progress.step("hosts") as step:
        keep_hosts(paths, store, wanted, make_hosts)
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
    context = merge_context(progress, paths, merging=merging, switch=switch) if kubernetes else UserContext()
    if nodes:
        with progress.step("nodes") as step:
            count = len(wanted.etcd[0].members)
            step.text = f"{await_nodes(progress, paths, admin, timeout, at_least=count)} nodes ready"
    result = {"context": context.name or None, "contextIsCurrent": context.current,
            "cluster": config.name, "seconds": round(time.monotonic() - progress.began, 2), "env": variables,
            "envFile": str(file), "etcd": etcd.version, "etcdctl": str(etcd.etcdctl), "dns": bringup.dns_address(admin),
            "kubernetes": kubernetes.version if kubernetes else None, "revision": revision.number,
            "kubelet": nodes is not None, "outside": outside,
            "kubernetesMissing": chosen.missing or None, "kubeletMissing": kubelets.missing or None,
            "kubectl": kubectl_of(kubernetes)}  # fmt: skip
    members = [each.dns_name for each in wanted.etcd[0].members]
    show(result, members, output, progress, default=DEFAULT_NAME, declined=option == NONE)
    if view.person:
        raise for_a_person(view)


def need_tools(missing: list[tuple[str, str]]) -> None:
    if missing:
        raise Refused(
            f"this machine lacks {', '.join(program for program, _ in missing)}",
            hint=f"apt-get install {' '.join(sorted({package for _, package in missing}))}",
            code="missing-program",
        )
