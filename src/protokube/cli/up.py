"""`protokube up`: three masters on one machine, etcd on floating disks, names in DNS, and it heals."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.progress import Progress
from protokube.errors import Refused, TryLater

if TYPE_CHECKING:
    from protokube.agent.wanted import MasterConfig
    from protokube.config.complete import Config
    from protokube.local.paths import Paths
    from protokube.local.view_values import ClusterView
    from protokube.programs.kubernetes import Kubernetes
    from protokube.providers.clients.local import LocalClient
    from protokube.store import Store

Texts = list[tuple[str, str]]


@click.command("up")
@click.argument("spec", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--cluster", "name", default="laptop", show_default=True, help="The cluster's name, if no SPEC names it.")
@click.option(
    "--masters", default=3, show_default=True, type=click.IntRange(1, 9), help="How many, if no SPEC says it."
)
@click.option("--events", is_flag=True, help="A second etcd cluster, for events alone.")
@click.option(
    "--kubernetes",
    "release",
    default="",
    metavar="VERSION",
    help="Which one; `none` for etcd and names alone.  [default: the spec's, or the newest on this machine]",
)
@click.option("--timeout", default=300.0, show_default=True, help="Seconds to wait until it is ready.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell the result.")
def up(spec: Path | None, name: str, masters: int, events: bool, release: str, timeout: float, output: str) -> None:
    """The main job on one machine: a control plane that heals.

    Hosts, disks, names, an etcd quorum on floating disks, and, where its programs are to be had, Kubernetes: see
    `protokube get kubernetes --help`. Needs root. Everything of it lies in one folder and in namespaces of its own;
    `protokube down` takes all of it away. Asked again, it goes on where it was, and changes nothing that is in order.

    \b
      protokube up
      protokube up --cluster second --masters 1
      protokube up --kubernetes none
      protokube up examples/local.yaml
    """
    from protokube.addons.choose import all_addons
    from protokube.agent.launchdata import from_config
    from protokube.local import binaries, bringup, client_files
    from protokube.local.paths import Paths
    from protokube.providers.clients.local import LocalClient
    from protokube.store.addons import put_addons, read_manifest
    from protokube.store.configuration import put_config
    from protokube.store.open import open_store

    progress = Progress(quiet=output == "json")
    with progress.step("this machine has what it takes"):
        need_root()
        need_tools(binaries.missing_tools())
    with progress.step("etcd") as step:
        etcd, etcdctl = (binaries.find(program, bringup.CACHE) for program in ("etcd", "etcdctl"))
        version = binaries.version(etcd)
        step.text = f"etcd {version}"
    with progress.step("Kubernetes") as step:
        kubernetes = find_kubernetes(spec, release)
        step.text = f"Kubernetes {kubernetes.version}" if kubernetes else "no Kubernetes: etcd and names alone"
    with progress.step("spec to complete configuration") as step:
        lines = few_lines(name, masters, version, events, kubernetes.version if kubernetes else "")
        config, texts = complete_spec(spec, lines)
        step.text = f"complete configuration of {config.name}"
    paths = Paths.of(config.name)
    with progress.step(f"state in {paths.root}"):
        paths.create()
        store = open_store(f"file://{paths.store}")
        put_config(store, config, texts)
        wanted = from_config(config, kubernetes=kubernetes is not None)
        if kubernetes:
            wanted = replace(wanted, addons=put_addons(store, config.name, all_addons(config, read_manifest)))
        bringup.ensure_authorities(store, wanted)
        bringup.write_client(store, paths, wanted)
        key = bringup.tsig_key(store, wanted.cluster)
    with progress.step("the local cloud") as step:
        step.text = f"the local cloud {'started' if bringup.start_daemon(paths) else 'runs already'}"
        admin = LocalClient(paths.admin_socket, patience=30)
        zone = config.cluster["dnsZone"]
        admin.call("set_dns", zones=[zone], keys=[{"name": key.name, "secret": key.secret}])
    with progress.step("disks") as step:
        volumes = bringup.create_founders(admin, wanted)
        for each in wanted.etcd:
            bringup.record_generation(store, wanted.cluster, each, volumes)
        step.text = f"{len(volumes)} disks, and the record of who may found what"
    with progress.step("hosts") as step:
        launch = bringup.launch_data(wanted, key, zone)
        programs = [etcd.parent, *([kubernetes.folder] if kubernetes else [])]
        bringup.set_groups(admin, wanted, bringup.template(launch, programs))
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
    told = {"cluster": config.name, "seconds": round(time.monotonic() - progress.began, 2), "env": variables,
            "envFile": str(file), "etcdctl": str(etcdctl), "dns": bringup.dns_address(admin),
            "kubernetes": kubernetes.version if kubernetes else None,
            "kubectl": str(kubernetes.folder / "kubectl") if kubernetes else None}  # fmt: skip
    if output == "json":
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(next_words(told, wanted.etcd[0].members[0].dns_name))


def need_root() -> None:
    if os.geteuid() != 0:
        raise Refused(
            "the local cloud needs root", saw=f"user {os.geteuid()}", want="namespaces, loop devices and mounts",
            hint="sudo protokube up",
        )  # fmt: skip


def need_tools(missing: list[tuple[str, str]]) -> None:
    if missing:
        raise Refused(
            f"this machine lacks {', '.join(program for program, _ in missing)}",
            hint=f"apt-get install {' '.join(sorted({package for _, package in missing}))}",
        )


def find_kubernetes(spec: Path | None, release: str) -> Kubernetes | None:
    """The programs that are here: of the release that was asked for, of the spec's, or the newest."""
    from protokube.local.bringup import CACHE
    from protokube.programs.kubernetes import find

    if release == "none":
        return None
    wanted = release or (complete_spec(spec, "")[0].cluster["kubernetesVersion"] if spec else None)
    found = find(wanted, CACHE)
    if found is None and release:
        raise Refused(
            f"there is no Kubernetes {release} on this machine", hint=f"`protokube get kubernetes {release}` fetches it"
        )
    return found


def complete_spec(spec: Path | None, lines: str) -> tuple[Config, Texts]:
    """The user's spec, or the few lines that stand for one."""
    from protokube.cli.inputs import read_specs
    from protokube.config.complete import complete
    from protokube.spec.parse import read

    texts = read_specs((str(spec),)) if spec else [("(the spec of `protokube up`)", lines)]
    config = complete(read(texts))
    cloud = config.cluster["cloud"]
    if cloud != "local":
        raise Refused(f"{texts[0][0]} is for {cloud}", want="cloud: local", hint="`protokube apply` will be for clouds")
    return config, texts


def few_lines(name: str, masters: int, etcd: str, events: bool, kubernetes: str) -> str:
    """A spec for what is here: this etcd, this Kubernetes."""
    version = f"  kubernetesVersion: {kubernetes}\n" if kubernetes else ""
    clusters = "".join(f"  - {{name: {key}, version: {etcd}}}\n" for key in ("main", "events")[: 1 + events])
    return (
        "apiVersion: protokube.io/v1alpha1\nkind: Cluster\n"
        f"metadata: {{name: {name}}}\nspec:\n  cloud: local\n  masters: {masters}\n{version}  etcdClusters:\n{clusters}"
    )


def await_quorum(
    progress: Progress, paths: Paths, admin: LocalClient, store: Store, wanted: MasterConfig, timeout: float
) -> None:
    """Until the record is closed in the store and on every volume's mark."""
    from protokube.local.bringup import is_closed
    from protokube.members.generation import FORMED

    end = time.monotonic() + timeout
    while True:
        open_ends = [each["id"] for each in admin.call("volumes") if each["mark"] != FORMED]
        if not open_ends and is_closed(store, wanted):
            return
        if time.monotonic() > end:
            raise TryLater(
                f"no quorum after {timeout:.0f} s", saw="; ".join(waits(paths)) or "the agents say nothing",
                hint="`protokube status` shows what is waited for",
            )  # fmt: skip
        progress.say((waits(paths) or ["quorum"])[0])
        time.sleep(0.05)


def waits(paths: Paths) -> list[str]:
    """What the agents say that they wait for."""
    found = []
    for file in sorted(paths.hosts.glob("*/run/protokube/status.json")):
        try:
            told = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        notes = (*told["report"]["needsAPerson"], *told["report"]["waiting"])
        found += [f"{told['machine']['name']}: {note.get('about') or note['step']}: {note['text']}" for note in notes]
    return found


def await_ready(progress: Progress, paths: Paths, timeout: float) -> ClusterView:
    from protokube.local.view import Looker

    end = time.monotonic() + timeout
    with Looker(paths) as looker:
        while not (view := looker.look()).ready:
            if time.monotonic() > end:
                raise TryLater(
                    f"not ready after {timeout:.0f} s", saw="; ".join(view.lacks), hint="`protokube status` shows why"
                )
            progress.say((view.lacks or ("all members healthy",))[0])
            time.sleep(0.05)
    return view


def next_words(told: dict[str, Any], member: str) -> str:
    server, _, port = told["dns"].rpartition(":")
    kubectl = f"  {told['kubectl']} get --raw '/readyz?verbose'\n" if told["kubectl"] else ""
    return f"""
{told["cluster"]} is up, after {told["seconds"]} s. What to type next:

  protokube status                     # hosts, disks, members, names, and what is waited for
  . {told["envFile"]}
{kubectl}  {told["etcdctl"]} endpoint status -w table
  {told["etcdctl"]} put hello world && {told["etcdctl"]} get hello
  dig +short @{server} -p {port} {member}
  protokube drill kill-master          # kill one, and watch it heal
  protokube down                       # take all of it away"""
