"""A whole run of nodeup on one root: lock, facts, tasks, carrying out, trace.

What a machine is told and what is seen of it become tasks in `model`, which `prepared` calls; everything else works on
any list of tasks. A run that cannot even begin leaves a trace, too: on a machine without a keyboard it is what remains.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from protokube import __version__
from protokube.errors import ProtokubeError, Refused
from protokube.nodeup import trace
from protokube.nodeup.catalog import KINDS, Kind
from protokube.nodeup.changes import Outcome
from protokube.nodeup.commands import MachineCommands
from protokube.nodeup.engine import leftovers
from protokube.nodeup.engine.attempt import Around
from protokube.nodeup.engine.failures import explained, reason
from protokube.nodeup.engine.lock import RUN, locked, place_for
from protokube.nodeup.engine.restarts import Restarts
from protokube.nodeup.facts import Facts
from protokube.nodeup.machine import Commands, Machine, Say, within
from protokube.nodeup.order import Graph, order
from protokube.nodeup.run import Observer, Patience, Run, RunControl, restarted_by
from protokube.nodeup.trace import Trace, end_of
from protokube.nodeup.values import Asset, Task

SETUP = "/etc/protokube/setup.json"
"""As a path of the machine."""
Prepare = Callable[[], tuple[Facts, tuple[Task, ...]]]
"""Reads what is known of the machine, and says what should be true of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run works."""

    root: Path = Path("/")
    run: Path = RUN
    """For locks and notes, on the machine that runs nodeup."""
    kinds: Mapping[type[Task], Kind] = field(default_factory=lambda: KINDS)
    patience: Patience = field(default_factory=Patience)

    def inside(self, path: str) -> Path:
        return Path(path) if self.root == Path("/") else within(self.root, path)

    @property
    def own(self) -> Path:
        """The folder of this root, below `run`."""
        return place_for(self.root, self.run)


def prepared(
    setup: Path | None,
    root: Path,
    *,
    bundle: Path | None = None,
    commands: Commands | None = None,
    say: Say = lambda _: None,
) -> tuple[Facts, tuple[Task, ...]]:
    """The tasks of a machine, from its setup and its facts, with `bundle` as the first source of what is downloaded.

    With `commands` the lists of packages are fetched where there are none yet, since the facts tell what they have;
    without, nothing is changed.
    """
    launch, host, model = (
        importlib.import_module(f"protokube.{name}")
        for name in ("launch.setup", "nodeup.host_facts", "nodeup.model.whole")
    )
    machine_setup = launch.read_setup(setup or Place(root=root).inside(SETUP))
    if machine_setup.proxy:  # for downloads and for commands, which inherit it
        os.environ.update(machine_setup.proxy.environment)
    facts: Facts = host.read_facts(root)
    host.refuse_unfit(facts, root)
    if commands and host.lacks_lists(root, facts):
        say("fetching the lists of packages, of which there are none yet")
        importlib.import_module("protokube.nodeup.packages.apt").update_lists(
            Machine(facts=facts, run=commands, root=root), lambda _: None
        )
        facts = host.read_facts(root)
    try:
        tasks: tuple[Task, ...] = model.tasks_of(machine_setup, facts)
    except Refused as error:
        if not commands and host.lacks_lists(root, facts):
            error.hint = "`apt-get update` first: without lists of packages a plan does not know what there is"
        raise
    if bundle is not None:
        bundles = importlib.import_module("protokube.nodeup.assets.bundle")
        tasks = bundles.first(tasks, bundles.open_bundle(bundle))
    return facts, tasks


def fetching(setup: Path | None, place: Place, bundle: Path | None, control: RunControl, say: Say) -> Prepare:
    """`prepared` for a run that changes the machine: lists of packages are fetched if there are none."""

    def prepare() -> tuple[Facts, tuple[Task, ...]]:
        return prepared(setup, place.root, bundle=bundle, commands=commands_of(place, control), say=say)

    return prepare


def commands_of(place: Place, control: RunControl) -> MachineCommands:
    return MachineCommands(place.root, stopping=control.stopping, notes=place.own / leftovers.FOLDER)


def provision(prepare: Prepare, place: Place, observer: Observer, control: RunControl) -> Trace:
    """Make the machine what it should be, as far as possible; the trace says how far. Raises if nothing was tried."""
    try:
        return _provision(prepare, place, observer, control)
    except OSError as error:  # of the lock
        raise explained(error, str(place.own)) from error


def _provision(prepare: Prepare, place: Place, observer: Observer, control: RunControl) -> Trace:
    began, zero = datetime.now(UTC), time.monotonic()
    empty = Trace(version=__version__, began=f"{began:%Y-%m-%dT%H:%M:%SZ}", seconds=0.0, end="error", needs={})
    _need_root(place)
    with locked(place.own, "protokube nodeup"):
        os.umask(0o022)  # of directories that are made on the way
        try:
            outcomes, graph = _carried_out(prepare, place, observer, control)
        except (ProtokubeError, OSError) as error:
            known = error if isinstance(error, ProtokubeError) else explained(error, str(place.root))
            done = replace(empty, seconds=time.monotonic() - zero, error=reason(known))
            _keep(place, done, observer)
            raise known from error
        done = replace(
            empty, seconds=time.monotonic() - zero, end=end_of(outcomes), outcomes=outcomes, needs=graph.needs
        )
        _keep(place, done, observer)
    return done


def _carried_out(
    prepare: Prepare, place: Place, observer: Observer, control: RunControl
) -> tuple[tuple[Outcome, ...], Graph]:
    leftovers.wait_for(place.own / leftovers.FOLDER, lambda text: observer.said("commands", text), control.stop_asked)
    graph, around = _around(prepare, place, control)
    if around.restarts:
        around.restarts.tidy()
    control.stop_asked()  # while facts were read, perhaps: then nothing begins
    run = Run(graph, around, observer, control, patience=place.patience)
    return run.carry_out(), graph


def foresee(prepare: Prepare, place: Place, observer: Observer, control: RunControl) -> tuple[Outcome, ...]:
    """What `provision` would change, and why. Changes nothing, and takes no lock."""
    _need_root(place)
    try:
        graph, around = _around(prepare, place, control)
    except OSError as error:
        raise explained(error, str(place.root)) from error
    return Run(graph, around, observer, control).plan()


def _need_root(place: Place) -> None:
    """In a folder that was mistyped, or where nothing is mounted, a trace would be written otherwise."""
    if not place.root.is_dir():
        raise Refused(f"there is no directory {place.root}", hint="--root names the root of an image")
    if not (place.root / "etc").is_dir():
        raise Refused(
            f"{place.root} is no root of a system", saw=f"no directory {place.root / 'etc'}",
            hint="--root names the root of an image; is it mounted?",
        )  # fmt: skip


def _around(prepare: Prepare, place: Place, control: RunControl) -> tuple[Graph, Around]:
    facts, tasks = prepare()
    machine = Machine(facts=facts, run=commands_of(place, control), root=place.root)
    if any(isinstance(task, Asset) for task in tasks):
        machine = importlib.import_module("protokube.nodeup.assets.cache").with_assets(machine, tasks)
    graph = order(tasks, cache=machine.cache)
    restarts = Restarts(place.own / "restarts") if machine.boots else None
    return graph, Around(machine, place.kinds, restarts, restarted_by(graph))


def _keep(place: Place, done: Trace, observer: Observer) -> None:
    """A trace that cannot be written is said, and changes nothing about the run: a full disk has its own error."""
    try:
        trace.keep(place.inside(trace.FOLDER), done)
    except (OSError, Refused) as error:
        known = error if isinstance(error, Refused) else explained(error, trace.FOLDER)
        observer.said("trace", f"not written: {known.in_one_line()}")
