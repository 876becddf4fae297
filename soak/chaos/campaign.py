"""Run one seed on one cluster, step after step, with clients and invariant checks, until something is broken.

A step applies its faults, undoes them, and waits until the cluster has recovered. For some faults the cluster may
refuse a member instead, if `status` gives an allowed cause; then the tester does what a person would do. After every
step the clients pause, and all histories are checked.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from clusters.real import RealCluster
from protokube.errors import ProtokubeError
from protokube.local.view.look import Looker
from protokube.view.cluster import ClusterView
from soak.budget import Budget, say
from soak.chaos.catalog import KINDS, OF_THE_MACHINE
from soak.chaos.clients import KEYS, Clients
from soak.chaos.fault import Fault
from soak.chaos.field import Field
from soak.chaos.history import by_key, counts
from soak.chaos.linear import NotLinearizable, Register, TooLarge
from soak.chaos.options import Options
from soak.chaos.revisions import Revisions
from soak.chaos.schedule import Step, steps
from soak.chaos.tally import Tally
from soak.chaos.watch import Watch

TRIED = (ProtokubeError, AssertionError, OSError)
"""The exceptions that commands, faults and waits may raise."""
PERSON_AFTER = 10.0
"""Seconds that a refusal has to last before the tester acts as the person."""
REJOIN = "15s"
"""How long a manually removed member stays out before it rejoins; the default, five minutes, is too long here."""
FIRST = 120.0
"""Seconds for a new cluster to become healthy."""


class Broken(Exception):
    """A promise was broken."""


@dataclass
class Campaign:
    """One seed."""

    seed: int
    options: Options
    budget: Budget
    tally: Tally

    def __post_init__(self) -> None:
        self.interrupted = False
        self.trace: list[str] = []
        self._began = time.monotonic()
        self._step = 0
        self._registers = dict.fromkeys(KEYS, Register())
        self._revisions = Revisions()

    def run(self) -> str:
        """A report of what is broken, with how to reproduce it; empty if nothing is."""
        self.tally.seeds.append(self.seed)
        broken = ""
        try:
            with RealCluster() as cluster:
                try:
                    broken = self._run_on(cluster)
                except KeyboardInterrupt:  # not a failure: if it left the context, the cluster would print every log
                    self.interrupted = True
        except (AssertionError, ProtokubeError) as why:  # it left something behind
            broken = "\n".join([broken or f"seed {self.seed}", f"the cluster could not be taken down: {why}"])
        return broken

    def _run_on(self, cluster: RealCluster) -> str:
        try:
            self._bring_up(cluster)
            self._note(f"{cluster.name} with {self.options.masters} masters is up")
            self._play(cluster)
        except (Broken, *TRIED) as why:
            self._keep_logs(cluster)
            return self._report(str(why), cluster)
        return ""

    def _bring_up(self, cluster: RealCluster) -> None:
        main = {"name": "main", "maintenance": {"rejoinRemovedAfter": REJOIN}}
        spec = cluster.write_spec(masters=self.options.masters, etcdClusters=[main])
        try:
            cluster.up(str(spec))
        finally:
            spec.unlink()

    def _play(self, cluster: RealCluster) -> None:
        members = [name.removeprefix("etcd-") for name in cluster.endpoints]
        with ExitStack() as stack:
            self._looker = stack.enter_context(Looker(cluster.paths))
            self._clients = stack.enter_context(Clients(cluster.endpoints, cluster.tls, self.seed))
            self._field = Field(cluster, self._sleep)
            self._watch = stack.enter_context(Watch(self._field, self._clients))
            stack.callback(self._count)
            self._until_whole((), FIRST)
            chosen = {kind: {**KINDS, **OF_THE_MACHINE}[kind] for kind in self.options.kinds}
            for step in steps(self.seed, chosen, members):
                if step.number > self.options.per_seed or self.budget.over:
                    break
                self._play_step(step)

    def _play_step(self, step: Step) -> None:
        self._step = step.number
        self._note(str(step))
        self.tally.faults.update(each.kind for each in step.faults)
        with ExitStack() as stack:
            try:
                self._apply(step, stack)
            except TRIED as why:
                raise Broken(f"the fault could not be applied: {why}") from why
        begun = time.monotonic()
        cause = self._until_whole(step.faults, step.bound)
        if cause:
            self._note(f"refused: {cause}")
            self.tally.refused[step.faults[0].kind] += 1
            self._mend(step.faults[0])
            self._note("the person did what has to be done")
            begun = time.monotonic()
            self._until_whole((), step.bound)
        took = time.monotonic() - begun
        self.tally.healing["+".join(each.kind for each in step.faults)].append(took)
        self._note(f"whole again after {took:.1f} s")
        self._field.discard()
        self._check()
        self.tally.steps += 1
        self._sleep(step.calm)

    def _apply(self, step: Step, stack: ExitStack) -> None:
        """Apply all faults of a step, each for its duration; the stack undoes what was begun, also after an error."""
        start = time.monotonic()
        ends = []
        for number, fault in enumerate(step.faults):
            self._sleep(step.later * number)
            stack.callback(self._undo, fault)
            fault.apply(self._field)
            ends.append(time.monotonic() + fault.lasts)
        self._sleep(max(ends) - time.monotonic())
        self._note(f"over after {time.monotonic() - start:.1f} s")

    def _undo(self, fault: Fault) -> None:
        try:
            fault.undo(self._field)
        except TRIED as why:
            self._watch.report(f"{fault.describe()}: {why}")

    def _mend(self, fault: Fault) -> None:
        try:
            fault.mend(self._field)
        except TRIED as why:
            raise Broken(f"the person could not help: {why}") from why

    def _until_whole(self, faults: Sequence[Fault], bound: float) -> str:
        """Wait until the cluster is healthy, and return ""; or return the cause of a refusal that the faults allow."""
        end = time.monotonic() + bound
        refused_since: float | None = None
        was_whole = False
        while True:
            view = self._looker.look()
            whole = is_whole(view)
            if whole and was_whole:
                return ""
            was_whole = whole
            cause = next(causes(view, faults, person_only=True), "")
            now = time.monotonic()
            refused_since = (refused_since or now) if cause else None
            if refused_since is not None and now - refused_since > PERSON_AFTER:
                return cause
            if now > end:
                if cause := next(causes(view, faults, person_only=False), ""):
                    return cause
                raise Broken(f"not whole within {bound:g} s, and no cause that would allow it: {show(view)}")
            self._sleep(0.5)

    def _check(self) -> None:
        """Check the histories of all registers so far."""
        self._clients.pause()
        self._clients.read_everything()
        operations = self._clients.take()
        self.tally.operations += counts(operations)
        if different := self._revisions.feed(operations):
            raise Broken(different)
        for key, part in by_key(operations).items():
            try:
                verdict = self._registers[key].feed(part)
            except TooLarge as why:
                self.tally.undecided += 1
                self._note(f"the history of {key} could not be decided: {why}")
                continue
            if isinstance(verdict, NotLinearizable):
                raise Broken(f"the history of {key} is not linearizable: {verdict}")
            self._registers[key] = verdict
        self._clients.resume()

    def _sleep(self, seconds: float) -> None:
        """Sleep; raises Broken as soon as something is broken."""
        if self._watch.alarm.wait(max(seconds, 0.0)):
            raise Broken("; ".join(self._watch.found))

    def _count(self) -> None:
        self.tally.looks += self._watch.looks
        self.tally.operations += counts(self._clients.take())

    def _note(self, text: str) -> None:
        line = f"{time.monotonic() - self._began:7.1f} s  {text}"
        self.trace.append(line)
        say(f"{self.options.section}, seed {self.seed}: {text}")

    def _report(self, why: str, cluster: RealCluster) -> str:
        last = ""
        with suppress(ProtokubeError, OSError), Looker(cluster.paths) as looker:
            last = show(looker.look())
        return "\n".join([
            f"seed {self.seed}, step {self._step}: {why}",
            *self.trace,
            f"at the end: {last}",
            f"replay: {self.options.replay(self.seed, max(self._step, 1))}",
        ])  # fmt: skip

    def _keep_logs(self, cluster: RealCluster) -> None:
        if self.options.logs is None:
            return
        target = self.options.logs / f"seed-{self.seed}"
        for log in [cluster.paths.log, *cluster.paths.hosts.glob("*/var/log/**/*.log")]:
            place = target / log.relative_to(cluster.paths.root)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, place)


def is_whole(view: ClusterView) -> bool:
    """Ready, and no agent needs a person."""
    return view.ready and not view.person


def causes(view: ClusterView, faults: Sequence[Fault], *, person_only: bool) -> Iterator[str]:
    """The notes of agents that match an allowed cause of the faults."""
    notes = view.person if person_only else (*view.person, *view.waits)
    for each in notes:
        text = f"{each.note.about}: {each.note.text} {each.note.saw}".strip()
        if any(fault.is_cause(text) for fault in faults):
            yield text


def show(view: ClusterView) -> str:
    """A summary of what `status` shows."""
    notes = [f"{each.host} waits: {each.note.about} {each.note.text}" for each in view.waits]
    notes += [f"{each.host} needs a person: {each.note.about} {each.note.text}" for each in view.person]
    notes += [f"{each.host} has a bug: {each.note.text}" for each in view.bugs]
    return "; ".join(["ready" if view.ready else "; ".join(view.lacks), *notes])
