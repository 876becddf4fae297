"""`protokube nodeup`: this machine, from a bare image of an operating system to an installed kubelet."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from protokube.cli.nodeup.setup import setup as setup_command
from protokube.cli.shared.options import Choice, output_option
from protokube.errors import ExitCode, InvalidRequest, NeedsRoot, ProtokubeError

if TYPE_CHECKING:
    from protokube.nodeup.provision import Place, Prepare
    from protokube.nodeup.run import RunControl

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 60.0
"""Seconds between two runs with --retry; twice as long after each one that failed."""
TARGETS = ("direct", "plan", "cloud-init")


def root_at(folder: Path) -> Path:
    """`//` or `/mnt/..` are this machine, and not an image: else there would be two locks for one root."""
    with suppress(OSError):
        if folder.samefile("/"):
            return Path("/")
    return folder.absolute()


root_option = click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), metavar="DIR",
    callback=lambda _context, _option, folder: root_at(folder),
    help="Root of an image instead of this machine: nothing is started there.",
)  # fmt: skip


@click.group(invoke_without_command=True)
@click.option("--setup", type=click.Path(path_type=Path), metavar="FILE",
              help="What the machine is told.  [default: /etc/protokube/setup.json below the root]")  # fmt: skip
@click.option("--target", type=Choice(TARGETS), default="direct", show_default=True,
              help="Change the machine; show what would change; or print a cloud-init document.")  # fmt: skip
@root_option
@click.option("--bundle", type=click.Path(path_type=Path), metavar="FILE",
              help="Take assets from this file of `protokube bundle` where it has them.")  # fmt: skip
@click.option("--retry", is_flag=True, help="Run again until everything is done, as on a boot.")
@output_option(default="text", choices=("text", "json"))
@click.pass_context
def nodeup(
    context: click.Context, setup: Path | None, target: str, root: Path, bundle: Path | None, retry: bool, output: str
) -> int:
    """Provision this machine, up to an installed kubelet.

    Reads what the machine is told (--setup), looks at the machine, and makes true what is not: packages, container
    runtime, CNI plugins, kubelet, agent, kernel parameters. The kubelet is installed; the agent starts it. Running it
    again changes nothing. A failure blocks what needs the failed task and nothing else, and the next run resumes.

    Exit code 0: everything is as it should be; 1: `--target plan` would change something; 2: bad input; 3: a failure
    that may pass by itself; 4: a person is needed; 130: stopped. docs/nodeup.md has more.

    \b
      protokube nodeup
      protokube nodeup --target plan
      protokube nodeup --root /mnt/image --setup setup.json
      protokube nodeup --bundle /media/rack.bundle
      protokube nodeup report
    """
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    from protokube.nodeup.engine.control import Control
    from protokube.nodeup.provision import Place, fetching, prepared

    if retry and target != "direct":
        raise InvalidRequest(f"--retry is for --target direct, and not for {target}", hint="leave it out")
    if bundle and target == "cloud-init":
        raise InvalidRequest("a cloud-init document cannot name a bundle of this machine", hint="leave out --bundle")
    place = Place(root=root.absolute())
    prepare = partial(prepared, setup, place.root, bundle=bundle)
    control: RunControl = Control()
    with control.stopped_by_signals():
        if target == "cloud-init":
            return cloud_init(prepare, output)
        if target == "plan":
            return plan(prepare, place, control, output)
        need_root(os.geteuid())
        changing = fetching(setup, place, bundle, control, partial(click.echo, err=True))
        return direct(changing, place, control, output, retry=retry)


def direct(
    prepare: Prepare, place: Place, control: RunControl, output: str, *, retry: bool, pause: float = FIRST_PAUSE
) -> ExitCode:
    """Change the machine; with `retry`, until nothing is left to do."""
    while True:
        error, code = None, ExitCode.REFUSED
        try:
            code = once(prepare, place, control, output, retry=retry)
        except ProtokubeError as why:
            error = why
        if error is not None and not retry:
            raise error
        if code is ExitCode.OK or control.stopping.is_set() or not retry:
            return ExitCode.STOPPED if control.stopping.is_set() and code is not ExitCode.OK else code
        with suppress(OSError):  # as in `once`
            if error is not None:
                click.echo(f"error: {error}", err=True)
            click.echo(f"nodeup: not done; tries again in {pause:g} s", err=True)
        if control.wait(pause):
            return ExitCode.STOPPED
        pause = min(pause * 2, LONGEST_PAUSE)


def once(prepare: Prepare, place: Place, control: RunControl, output: str, *, retry: bool = False) -> ExitCode:
    """With `retry`, the machine matters more than who reads of it: output that cannot be written ends nothing."""
    from protokube.cli.nodeup.live import Live
    from protokube.cli.render.nodeup import exit_code, summary
    from protokube.nodeup.provision import provision
    from protokube.nodeup.trace import to_tree

    live = Live(quiet=output == "json")
    try:
        trace = provision(prepare, place, live, control)
    finally:
        live.close()
    with suppress(OSError) if retry else nullcontext():
        click.echo(json.dumps(to_tree(trace), indent=2) if output == "json" else summary(trace.outcomes, trace.seconds))
    return exit_code(trace.outcomes)


def plan(prepare: Prepare, place: Place, control: RunControl, output: str) -> ExitCode:
    """Show what would change; change nothing."""
    from protokube.cli.nodeup.live import Unseen
    from protokube.cli.render.nodeup import exit_code, plain, plan_line, plan_summary, plan_tree
    from protokube.nodeup.provision import foresee

    outcomes = foresee(prepare, place, Unseen(), control)
    if output == "json":
        click.echo(json.dumps(plan_tree(outcomes), indent=2))
    else:
        for line in filter(None, map(plan_line, outcomes)):
            click.echo(plain(line))
        click.echo(plan_summary(outcomes))
    return exit_code(outcomes, plan=True)


def cloud_init(prepare: Prepare, output: str) -> ExitCode:
    """Print the tasks as a document; the machine that this is run on decides nothing but the facts."""
    from protokube.nodeup.cloudinit.document import document
    from protokube.nodeup.machine import CACHE
    from protokube.nodeup.order import order

    if output == "json":
        raise InvalidRequest("a cloud-init document is YAML", hint="leave out -o json")
    facts, tasks = prepare()
    click.echo(document(order(tasks, cache=CACHE), facts, cache=CACHE), nl=False)
    return ExitCode.OK


@nodeup.command()
@click.argument("run", type=click.IntRange(1), required=False)
@root_option
@output_option(default="text", choices=("text", "json"))
def report(run: int | None, root: Path, output: str) -> None:
    """Show what a run did, with its critical path, its slowest tasks and its failures.

    RUN is the number of one of the last runs; without it, the newest is shown.

    \b
      protokube nodeup report
      protokube nodeup report 7 -o json
    """
    from protokube.cli.render.nodeup import render_report, report_tree
    from protokube.cli.shared.screen import show_painted
    from protokube.nodeup.provision import Place
    from protokube.nodeup.trace import FOLDER, read

    number, trace = read(Place(root=root.absolute()).inside(FOLDER), run)
    if output == "json":
        click.echo(json.dumps(report_tree(number, trace), indent=2))  # ASCII: names of files may have any bytes
    else:
        show_painted(render_report(number, trace))


nodeup.add_command(setup_command)


def need_root(user: int) -> None:
    if user != 0:
        raise NeedsRoot("nodeup needs root", saw=f"user {user}", hint="sudo protokube nodeup")
