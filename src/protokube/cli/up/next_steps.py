"""What `up` prints at its end: commands that work as they are printed, from the shell in which `up` was typed.

That shell may not find `protokube` or `kubectl` on its PATH, may have called `up` by sudo, which passes no variables
on, and may be a zsh, which takes no comments: so what a command does is a line of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.up.kubernetes import Kubernetes, minutes_to_build, newest_release
from protokube.errors import ProtokubeError

if TYPE_CHECKING:
    from protokube.binaries.product import Release
    from protokube.cli.shared.progress import Progress

PASSED_ON = ("PROTOKUBE_STATE", "PROTOKUBE_CACHE")
"""Variables that decide what a command works on."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command, and what it does."""

    command: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The shell in which `up` was typed, as far as it decides how commands are written."""

    protokube: str
    """Our command as it was called."""
    sudo: bool = False
    variables: Mapping[str, str] | None = None
    """Those that sudo would not pass on."""

    @staticmethod
    def observe() -> Shell:
        sudo = os.environ.get("SUDO_UID", "0") != "0"
        variables = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)} if sudo else {}
        return Shell(protokube=called_as(sys.argv[0]), sudo=sudo, variables=variables)

    def run(self, words: str, **variables: str) -> str:
        """The command line for a command with these variables."""
        given = {**(self.variables or {}), **variables}
        before = [f"{name}={shlex.quote(value)}" for name, value in given.items()]
        if self.sudo:
            before = ["sudo", *(["env", *before] if before else [])]
        return " ".join([*before, words])

    def sourced(self, file: str, words: str) -> str:
        """The command line for a command with the variables that a file exports, which the shell does not keep."""
        script = f". {shlex.quote(file)} && {words}"
        return f"{'sudo ' * self.sudo}sh -c {shlex.quote(script)}"


def called_as(program: str) -> str:
    """The words that call protokube again: its name if the PATH finds this very file, else the way it was called."""
    path = Path(program)
    if path.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m protokube"
    found = shutil.which(path.name)
    if found and path.exists() and Path(found).samefile(path):
        return path.name
    if path.exists() and not os.access(path, os.X_OK):  # `python3 protokube.pyz up`
        return shlex.join([sys.executable, program])
    return shlex.quote(program)


def show(
    result: Mapping[str, Any], members: Sequence[str], output: str, progress: Progress, *, default: str, declined: bool
) -> None:
    """Print the result of `up`.

    `members`: the DNS names of etcd's members. `default`: the cluster that `up` takes if none is named. `declined`: no
    Kubernetes was wanted.
    """
    from protokube.local.bringup import CACHE
    from protokube.local.choose import clusters

    shell = Shell.observe()
    steps = next_steps(result, members[0], shell, several=len(clusters()) > 1)
    adding = None
    if not result["kubernetes"] and not declined:
        with suppress(ProtokubeError):  # a folder or mirror that the user names, and is wrong: `up` did not need it
            release = to_add(result["kubernetesMissing"] or "", CACHE, progress)
            adding = adding_kubernetes(
                result, shell, default, release, minutes=minutes_to_build(), alone=len(members) == 1
            )
    if output == "json":
        commands = [step.command for step in [*steps, *([adding] if adding else [])]]
        click.echo(json.dumps({**result, "next": commands}, indent=2))
    else:
        click.echo(text(result, steps, adding))


def to_add(missing: str, cache: Path, progress: Progress) -> Kubernetes:
    """What can be had now: a cluster without Kubernetes does not look for it when it comes up again.

    `missing`: why there is none, if this command has just looked.
    """
    from protokube.binaries.kubernetes import find

    if found := find(None, cache):
        return Kubernetes(version=found.version, here=found)
    if missing:
        return Kubernetes(missing=missing)
    with progress.step("can a release of Kubernetes be downloaded?") as step:
        release = newest_release()
        step.text = release.missing or f"Kubernetes {release.version} can be added"
    return release


def kubectl_of(kubernetes: Release | None) -> str | None:
    """A folder that the user names may lack it."""
    found = kubernetes.programs.get("kubectl") if kubernetes else None
    return str(found) if found else None


def next_steps(result: Mapping[str, Any], member: str, shell: Shell, *, several: bool) -> Sequence[Step]:
    """`several`: whether commands have to say which cluster they are for."""
    ours, which = shell.protokube, f" --cluster {result['cluster']}" if several else ""
    etcdctl = shlex.quote(result["etcdctl"])
    steps = [Step(shell.run(f"{ours} status{which}"), "hosts, disks, members, names, and what is waited for")]
    if result["kubectl"] and result["kubelet"]:
        steps.append(Step(kubectl(result, shell, "get nodes"), "the hosts as nodes that run pods"))
    elif result["kubectl"]:
        steps.append(Step(kubectl(result, shell, "get --raw '/readyz?verbose'"), "the checks of an API server"))
    steps += [
        Step(shell.sourced(result["envFile"], f"{etcdctl} endpoint status -w table"), "the members of etcd"),
        Step(shell.sourced(result["envFile"], f"{etcdctl} put hello world && {etcdctl} get hello"), "write, and read"),
    ]
    if shutil.which("dig"):
        server, _, port = result["dns"].rpartition(":")
        steps.append(Step(f"dig +short @{server} -p {port} {member}", "the address of the host that holds this member"))
    return [
        *steps,
        Step(shell.run(f"{ours} drill kill-master{which}"), "kill a master, and watch the cluster heal"),
        Step(shell.run(f"{ours} down{which}"), "take all of it away"),
    ]


def kubectl(result: Mapping[str, Any], shell: Shell, words: str) -> str:
    """The command line that has kubectl ask this cluster: by its context, if the user's kubeconfig has one."""
    program = "kubectl" if shutil.which("kubectl") else shlex.quote(result["kubectl"])
    if context := result.get("context"):
        which = "" if result.get("contextIsCurrent") else f" --context {context}"
        return f"{program}{which} {words}"
    return shell.run(f"{program} {words}", KUBECONFIG=result["env"]["KUBECONFIG"])


def adding_kubernetes(
    result: Mapping[str, Any], shell: Shell, default: str, release: Kubernetes, *, minutes: int, alone: bool
) -> Step:
    """How a cluster without Kubernetes gets it: what is on this machine, else the release, or what needs no release.

    `alone`: with one master nothing answers while its host is replaced, which has to be accepted.
    """
    which = "" if result["cluster"] == default else f" --cluster {result['cluster']}"
    if release.here:
        version, does = release.version, "its programs are on this machine"
    elif release.missing:
        version = "build"
        does = f"built from Go modules, in about {minutes} minutes; Go is taken from the PATH, or from PyPI"
    else:
        version, does = release.version, "its programs are downloaded, about 400 MB"
    if alone:
        version, does = f"{version} --yes", f"{does}; its only master answers nothing for half a minute or so"
    return Step(shell.run(f"{shell.protokube} up{which} --kubernetes {version}"), does)


def text(result: Mapping[str, Any], steps: Sequence[Step], adding: Step | None) -> str:
    """All that `up` prints."""
    lines = ["", f"{result['cluster']} is up, after {result['seconds']} s. What to type next:", ""]
    lines += [line for step in steps for line in _lines(step)]
    if adding:
        lines += ["", "It runs without Kubernetes. To add it to this cluster:", "", *_lines(adding)]
    return "\n".join(lines)


def _lines(step: Step) -> list[str]:
    return [f"  {step.command}", f"      {step.does}"]
