"""The context of a cluster in the kubeconfig of whoever typed the command: what `up`, `down` and `export` do with it.

A kubeconfig that cannot be read or changed never fails `up` or `down`: it is a warning, with what to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.options import show_warnings
from protokube.errors import Problem, ProtokubeError

if TYPE_CHECKING:
    from protokube.cli.shared.progress import Progress
    from protokube.local.base.paths import Paths
    from protokube.local.contexts.merging import Access, MergePlan
    from protokube.local.contexts.user_kubeconfig import Place

Decorated = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserContext:
    """Where plain `kubectl`, as typed by this person next, will lead."""

    name: str = ""
    """The cluster's context; empty if none was merged."""
    current: bool = False

    @property
    def kubectl(self) -> str:
        """The command that reaches the cluster; empty if there is none without KUBECONFIG."""
        return f"kubectl{'' if self.current else f' --context {self.name}'}" if self.name else ""


def switch_option(function: Decorated) -> Decorated:
    text = "Whether the merged context becomes the current one, which `kubectl` uses.  [default: it does]"
    return click.option("--switch-context/--no-switch-context", "switch", default=True, help=text)(function)


def merge_option(function: Decorated) -> Decorated:
    return click.option(
        "--kubeconfig/--no-kubeconfig",
        "merging",
        default=True,
        envvar="PROTOKUBE_KUBECONFIG",
        show_envvar=True,
        help="Whether to merge a context into your kubeconfig; under sudo, into that of the user who typed it.  "
        "[default: it is merged]",
    )(function)


def merge_context(progress: Progress, paths: Paths, *, merging: bool, switch: bool) -> UserContext:
    """Merge the context of a local cluster, from the kubeconfig that `up` wrote."""
    if not merging:
        return UserContext()
    with progress.step("context for kubectl") as step:
        try:
            plan = merge(operator_access(paths), paths, switch=switch)
            refresh_contexts(paths)
        except (ProtokubeError, OSError) as why:
            step.text = "no context for kubectl"
            failed = why
        else:
            switched = "" if plan.current else ", not the current one"
            step.text = f"context {plan.context} in {plan.path}{switched}"
            return UserContext(name=plan.context, current=plan.current)
    warn(failed, "no context was merged into your kubeconfig", "`protokube export kubeconfig -o FILE` writes one")
    return UserContext()


def refresh_contexts(paths: Paths) -> None:
    """Bring the address of the API up to date wherever the cluster has a context; create and switch nothing."""
    from protokube.local.contexts import record, user_kubeconfig
    from protokube.local.contexts.person import system_person

    try:
        places = record.read(paths, system_person)
        if not places:
            return
        access = operator_access(paths)
    except (ProtokubeError, OSError) as why:
        warn(why, f"{paths.cluster}: its contexts may be out of date", "protokube up")
        return
    for place in places:
        try:
            user_kubeconfig.refresh(place, access)
        except (ProtokubeError, OSError) as why:
            warn(why, f"{paths.cluster}: its context in {', '.join(place.paths)} may be out of date", "protokube up")


def operator_access(paths: Paths) -> Access:
    from protokube.local.contexts.merging import OPERATOR
    from protokube.local.contexts.user_kubeconfig import access_from, owner_of
    from protokube.local.contexts.values import Mark

    mark = Mark(owner=owner_of(str(paths.root)), user=OPERATOR)
    return access_from((paths.client / "kubeconfig").read_text(), paths.cluster, mark)


def merge(access: Access, paths: Paths | None, *, switch: bool) -> MergePlan:
    """Merge into the files of this person. With a local cluster, remember where, so that `down` takes it out."""
    from protokube.local.contexts import record, user_kubeconfig

    place = this_place()
    if paths is not None:
        record.add(paths, place)
    return user_kubeconfig.merge(place, access, switch=switch)[0]


def this_place() -> Place:
    """The kubeconfig files of whoever typed this command. Refused if those are our own files in a state folder."""
    from protokube.errors import Refused
    from protokube.local.base.paths import Paths
    from protokube.local.contexts.person import VARIABLE, files_of, system_person, who_typed
    from protokube.local.contexts.user_kubeconfig import Place

    person = who_typed(os.environ, os.geteuid(), system_person)
    files = files_of(person, os.environ, str(Path.cwd()))
    states = Paths.of("any").root.parent
    for each in map(Path, files):  # by their names alone: root looks at no file of a user
        if each.is_relative_to(states):
            raise Refused(f"{VARIABLE} names a file of a cluster's own", saw=str(each), hint=f"unset {VARIABLE}")
    return Place(person=person, paths=files)


def take_out_contexts(paths: Paths) -> list[str]:
    """Take the contexts of a local cluster out of every kubeconfig into which they were merged; say what was done."""
    from protokube.local.contexts import record, user_kubeconfig
    from protokube.local.contexts.person import system_person

    done: list[str] = []
    try:
        places = record.read(paths, system_person) if paths.is_ours() else []
    except (ProtokubeError, OSError) as why:
        warn(why, f"{paths.cluster}: its contexts are still in kubeconfigs", "kubectl config delete-context NAME")
        return done
    for place in places:
        try:
            plan = user_kubeconfig.remove(place, user_kubeconfig.owner_of(str(paths.root)))
        except (ProtokubeError, OSError) as why:
            hint = f"kubectl config delete-context protokube-{paths.cluster}"
            warn(why, f"{paths.cluster}: its context is still in {', '.join(place.paths)}", hint)
            continue
        back = f", {plan.restored} is current again" if plan.restored else ""
        done += [f"removed the context {name}{back}" for name in plan.contexts]
    return done


def warn(why: Exception, what: str, hint: str) -> None:
    text, saw, first = str(why), "", ""
    if isinstance(why, ProtokubeError):
        text, saw, first = why.message, why.saw, why.hint
    message = ": ".join(part for part in (what, text, saw) if part)
    show_warnings([Problem(path="", message=message, hint="\n".join(part for part in (first, hint) if part))])
