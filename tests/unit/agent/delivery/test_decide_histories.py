"""Masters that fail, restart and are replaced at any moment of a rollout, and operators who do not wait for its end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders.examples import examples
from protokube.agent.delivery.decide import (
    Action,
    Complete,
    EndTurn,
    Free,
    GoBack,
    Leave,
    Nothing,
    Person,
    Stop,
    Switch,
    TakeTurn,
    Wait,
    decide,
)
from protokube.launch.rollout import Failure, Rollout, State, Turn

PATIENCE = 3
"""Ticks after which a master gives a revision up."""
NUMBER = st.integers(0, 2)


@dataclass(frozen=True)
class Revision:
    """As much of one as matters here."""

    flags: int
    """What is read at a start: another value restarts something."""
    comes_up: bool = True
    fixed: int = 0
    """What no living cluster can change."""
    etcd: int = 5
    """The minor version of its program, which is another start, too."""
    kubelet: bool = False
    """Only machines that were made for such a revision can run it, and these can run no other."""


@dataclass
class Master:
    """One machine with its disk; `pending` is what its agent has decided and not yet done."""

    id: str
    mine: int
    former: int | None = None
    made_for: int = 1
    up: bool = True
    """What has nothing to do with revisions is well."""
    starting: int = 0
    """Ticks until what restarted answers."""
    ill_for: int = 0
    """Ticks, as its agent counts them."""
    unsettled: bool = False
    """It restarted something for a revision, and was not healthy since."""
    pending: tuple[Rollout, Action] | None = None


@dataclass
class Sight:
    world: World
    me: Master
    record: Rollout
    machine: str = field(init=False)
    mine: int = field(init=False)
    former: int | None = field(init=False)
    made_for: int = field(init=False)

    def __post_init__(self) -> None:
        self.machine, self.mine, self.former = self.me.id, self.me.mine, self.me.former
        self.made_for = self.me.made_for

    def misfit(self) -> bool:
        return self.world.revisions[self.mine].kubelet != self.world.revisions[self.record.wanted].kubelet

    def idle(self) -> bool:
        return not self.me.starting and not self.world.healthy(self.me)

    def stays(self) -> str:
        ill = [each.id for each in self.world.masters if each.id != self.me.id and not self.world.healthy(each)]
        return f"{ill[0]} does not answer" if ill else ""

    def restarts(self) -> tuple[str, ...]:
        return ("etcd main",) if self.world.differs(self.me.mine, self.record.wanted) else ()

    def forbidden(self) -> tuple[str, ...]:
        known = self.world.revisions
        if known[self.me.mine].fixed != known[self.record.wanted].fixed:
            return ("the name",)
        return () if self.world.reads(self.record.wanted) else ("its data is newer",)

    def outdated(self) -> str:
        """As etcd itself says when it does not start."""
        older = self.world.revisions[self.me.mine].etcd < self.world.revisions[self.record.wanted].etcd
        return "etcd main" if older and not self.world.reads(self.mine) and not self.me.starting else ""

    def no_way_back(self) -> str:
        """Nobody knows without a quorum."""
        return (
            "its data is newer" if self.former and self.world.has_quorum() and not self.world.reads(self.former) else ""
        )

    def others(self) -> str:
        ill = [each.id for each in self.world.masters if each.id != self.me.id and not self.world.healthy(each)]
        return f"{ill[0]} does not answer" if self.restarts() and ill and not self.outdated() else ""

    def own(self) -> str:
        return "" if self.world.healthy(self.me) else "etcd: it does not run"

    def broken(self) -> str:
        return "etcd: it does not run" if self.me.ill_for >= PATIENCE else ""

    def turn_is_gone(self) -> bool:
        return self.record.turn is not None and self.record.turn.machine not in self.world.existing()

    def elected(self) -> bool:
        return self.world.elected == self.me.id and (self.world.has_quorum() or self.world.always_elects)

    def behind(self) -> str:
        late = [each.id for each in self.world.masters if each.mine != self.record.wanted]
        return f"{late[0]} does not run it yet" if late else ""


class World:
    """The masters, the store, and which revisions there are."""

    def __init__(self, count: int) -> None:
        self.revisions = {1: Revision(flags=1)}
        self.record = Rollout(wanted=1, state=State.DONE)
        self.masters = [Master(f"i-{number}", mine=1) for number in range(count)]
        self.elected = "i-0"
        self.made = count
        self.always_elects = True
        self.template = 1
        """The revision for which the cloud makes machines."""
        self.agreed = 5
        """The minor version of etcd that all members have run: older programs do not read its data."""

    def existing(self) -> set[str]:
        return {each.id for each in self.masters}

    def differs(self, one: int, other: int) -> bool:
        mine, others = self.revisions[one], self.revisions[other]
        return (mine.flags, mine.etcd) != (others.flags, others.etcd)

    def reads(self, number: int) -> bool:
        return self.revisions[number].etcd >= self.agreed

    def healthy(self, master: Master) -> bool:
        comes_up = self.revisions[master.mine].comes_up and self.reads(master.mine)
        return master.up and not master.starting and comes_up

    def has_quorum(self) -> bool:
        return sum(self.healthy(each) for each in self.masters) > len(self.masters) / 2

    def settle(self) -> None:
        if all(each.up and not each.starting and self.reads(each.mine) for each in self.masters):
            self.agreed = min(self.revisions[each.mine].etcd for each in self.masters)
        for each in self.masters:
            each.unsettled = each.unsettled and not self.healthy(each)

    def tick(self) -> None:
        for each in self.masters:
            each.starting = max(each.starting - 1, 0)
            each.ill_for = 0 if self.healthy(each) else each.ill_for + 1
        self.settle()

    def look(self, master: Master) -> None:
        master.pending = (self.record, decide(self.record, Sight(self, master, self.record)))

    def act(self, master: Master, *, lost: bool = False) -> bool:
        """Carry out what was decided; whether that changed anything. `lost`: the agent dies right before the end."""
        if master.pending is None:
            return False
        (seen, action), master.pending = master.pending, None
        match action:
            case Nothing() | Wait() | Person():
                return False
            case Leave():
                self.replace_machine(self.masters.index(master), leaves=True)
                return True
            case Switch(number):
                master.former = master.mine
                if not lost:
                    self._run(master, number)
                return True
            case GoBack():
                assert master.former is not None
                left = master.mine
                self._run(master, master.former)
                master.former = master.former if lost else left
                return True
            case _:
                return self._write(master, seen, action)

    def _run(self, master: Master, number: int) -> None:
        assert number != master.mine, "an agent restarts to run the same"
        stranded = master.made_for > self.record.at_boot() and not self.healthy(master)
        if self.differs(master.mine, number) and (stranded or not self.reads(master.mine)):
            master.starting = 2  # nothing that worked restarts
        elif self.differs(master.mine, number):
            master.unsettled, master.starting = True, 2
        master.mine, master.ill_for = number, 0

    def _write(self, master: Master, seen: Rollout, action: Action) -> bool:
        if self.record != seen:
            return False  # another writer was faster
        match action:
            case TakeTurn():
                after = seen.taken(Turn(machine=master.id, name=master.id, at=0.0, revision=master.mine), "")
            case EndTurn(text):
                assert seen.turn is not None
                assert seen.turn.machine == master.id
                after = seen.ended(0.0, master.id, text)
            case Stop(text):
                failure = Failure(machine=master.id, name=master.id, revision=master.mine, text=text)
                after = seen.stopped(failure, 0.0)
            case Free():
                assert seen.turn is not None
                assert seen.turn.machine not in self.existing(), "a turn ended whose machine exists"
                after = seen.ended(0.0, master.id, "")
            case _:
                assert isinstance(action, Complete)
                after = seen.completed(0.0, master.id)
        assert after != seen, f"{action} changes nothing"
        self.record = after
        return True

    def put_in_force(self, revision: Revision) -> None:
        number = self.make(revision)
        if self.revisions[self.template].kubelet != revision.kubelet:
            self.template = number  # first, so that no machine leaves for one of its own kind
        self.record = self.record.begun(number, 0.0, "anna")

    def make(self, revision: Revision) -> int:
        number = max(self.revisions) + 1
        self.revisions[number] = revision
        return number

    def replace_machine(self, number: int, *, leaves: bool = False) -> None:
        at_boot = self.record.at_boot()
        fits = self.revisions[at_boot].kubelet == self.revisions[self.template].kubelet
        mine, gone = at_boot if fits else self.template, self.masters[number]
        unsettled = leaves and self.healthy(gone)  # else nobody misses it
        self.masters[number] = Master(f"i-{self.made}", mine, made_for=self.template, starting=2, unsettled=unsettled)
        self.made += 1
        if leaves and self.elected == gone.id:
            self.elected = next((each.id for each in self.masters if self.healthy(each)), self.masters[number].id)


class AnyRollout(RuleBasedStateMachine):
    count = 3

    @initialize()
    def begin(self) -> None:
        self.world = World(self.count)

    def master(self, which: int) -> Master:
        return self.world.masters[which % self.count]

    @rule(flags=st.integers(1, 3), comes_up=st.booleans(), fixed=st.sampled_from([0, 0, 0, 1]), etcd=st.integers(5, 7))
    def an_operator_puts_a_revision_in_force(self, flags: int, comes_up: bool, fixed: int, etcd: int) -> None:
        """A command refuses what the data is too new for already."""
        known = {each.flags: each.comes_up for each in self.world.revisions.values()}
        kubelet = self.world.revisions[self.world.record.wanted].kubelet
        agreed = self.world.agreed
        self.world.put_in_force(Revision(flags, known.get(flags, comes_up), fixed, max(etcd, agreed), kubelet))

    @rule()
    def an_operator_tries_again(self) -> None:
        if self.world.record.state is State.STOPPED:
            self.world.record = self.world.record.begun(self.world.record.wanted, 0.0, "anna")

    @rule(which=NUMBER)
    def a_round(self, which: int) -> None:
        self.world.look(self.master(which))
        self.world.act(self.master(which))

    @rule(which=NUMBER)
    def a_round_begins(self, which: int) -> None:
        self.world.look(self.master(which))

    @rule(which=NUMBER, lost=st.booleans())
    def it_ends(self, which: int, lost: bool) -> None:
        self.world.act(self.master(which), lost=lost)

    @rule(which=NUMBER)
    def an_agent_dies(self, which: int) -> None:
        master = self.master(which)
        master.pending, master.ill_for = None, 0

    @rule(which=NUMBER, up=st.booleans())
    def a_master_falls_ill_or_gets_well(self, which: int, up: bool) -> None:
        self.master(which).up = up
        self.world.settle()

    @rule(which=NUMBER)
    def a_machine_is_replaced(self, which: int) -> None:
        self.world.replace_machine(which % self.count)

    @rule(which=NUMBER)
    def another_is_elected(self, which: int) -> None:
        self.world.elected = self.master(which).id

    @rule(ticks=st.integers(1, PATIENCE + 1))
    def time_passes(self, ticks: int) -> None:
        for _ in range(ticks):
            self.world.tick()

    @invariant()
    def at_most_one_master_is_away_for_a_rollout(self) -> None:
        assert sum(each.unsettled for each in self.world.masters) <= 1

    def teardown(self) -> None:
        """Everybody is well from now on: it comes to an end, and not to a loop."""
        world = getattr(self, "world", None)
        if world is None:
            return
        for each in world.masters:
            each.up, each.pending = True, None
        world.elected = world.masters[0].id
        quiet = 0
        for _ in range(200):
            acted = False
            for each in world.masters:
                world.look(each)
                acted |= world.act(each)
                self.at_most_one_master_is_away_for_a_rollout()
            world.tick()
            quiet = 0 if acted else quiet + 1
            if quiet > 2 * PATIENCE:
                break
        else:
            raise AssertionError(f"it goes on for ever: {[each.text for each in world.record.events[-6:]]}")
        self.check_end(world)

    def go_on(self, world: World) -> None:
        for _ in range(100):
            for each in world.masters:
                world.look(each)
                world.act(each)
                self.at_most_one_master_is_away_for_a_rollout()
            world.tick()

    def check_end(self, world: World) -> None:
        record, running = world.record, {each.mine for each in world.masters}
        fixed = any(world.revisions[each].fixed != world.revisions[record.wanted].fixed for each in running)
        assert record.turn is None
        if not world.reads(record.wanted):
            return  # put in force while a newer etcd still came up: a person has to name another one
        for each in world.masters:
            way_back = record.state is not State.STOPPED or world.reads(record.before)
            if way_back and not (fixed and world.agreed > 5):
                assert world.healthy(each), "whoever fails is back on what came up before"
            assert fixed or world.reads(each.mine) or not world.reads(record.wanted), "its etcd runs if any can"
        if record.state is State.STOPPED or fixed:
            return
        assert (running, record.state, record.turn) == ({record.wanted}, State.DONE, None), replace(record, events=())


class AnyRolloutOfOneMaster(AnyRollout):
    """Nobody else answers while it does not."""

    count = 1

    def check_end(self, world: World) -> None:
        """A new machine cannot return where its data is newer than what all ran: then only an operator helps."""
        (master,) = world.masters
        former = world.record.before or world.record.wanted
        if not world.reads(former) and not world.healthy(master):
            world.put_in_force(Revision(1, comes_up=True, etcd=world.agreed))
            self.go_on(world)
        super().check_end(world)


class AnyReplacement(AnyRollout):
    """An operator adds kubelets, for which every machine is replaced, or undoes it, and may be killed meanwhile."""

    @initialize()
    def begin(self) -> None:
        self.world = World(self.count)
        self.world.always_elects = False

    @rule(comes_up=st.booleans())
    def an_operator_has_machines_made_for_another_kind(self, comes_up: bool) -> None:
        self.world.put_in_force(self.other_kind(comes_up))

    @rule(comes_up=st.booleans())
    def an_operator_is_killed_right_before_that_is_in_force(self, comes_up: bool) -> None:
        self.world.template = self.world.make(self.other_kind(comes_up))

    def other_kind(self, comes_up: bool) -> Revision:
        now = self.world.revisions[self.world.record.wanted]
        return replace(now, flags=4, comes_up=comes_up, fixed=0, kubelet=not now.kubelet, etcd=self.world.agreed)

    def check_end(self, world: World) -> None:
        """Where it stands still, the operator puts one in force that comes up; whatever was, all masters run that."""
        wanted = world.revisions[world.record.wanted]
        world.put_in_force(Revision(1, comes_up=True, etcd=world.agreed, kubelet=wanted.kubelet))
        self.go_on(world)
        fixed = any(world.revisions[each.mine].fixed for each in world.masters)
        assert fixed or {each.mine for each in world.masters} == {world.record.wanted}
        assert fixed or world.record.state is State.DONE


class AnyReplacementOfOneMaster(AnyReplacement):
    count = 1


AnyReplacement.TestCase.settings = AnyReplacementOfOneMaster.TestCase.settings = examples(60, stateful_step_count=40)
TestAnyReplacement, TestAnyReplacementOfOneMaster = AnyReplacement.TestCase, AnyReplacementOfOneMaster.TestCase
AnyRollout.TestCase.settings = AnyRolloutOfOneMaster.TestCase.settings = examples(60, stateful_step_count=40)
TestAnyRollout, TestAnyRolloutOfOneMaster = AnyRollout.TestCase, AnyRolloutOfOneMaster.TestCase


@pytest.mark.parametrize("cannot", [{"flags": 1, "fixed": 1}, {"flags": 2, "fixed": 0}])
def test_the_only_master_that_is_replaced_after_an_upgrade_goes_on_with_a_revision_that_comes_up(
    cannot: dict[str, int],
) -> None:
    """Its data is newer than what all ran, and the revision in force then cannot be taken, or does not come up."""
    history = AnyRolloutOfOneMaster()
    history.begin()
    history.an_operator_puts_a_revision_in_force(flags=1, comes_up=True, fixed=0, etcd=6)
    for _ in range(2):
        history.a_round(0)
    history.time_passes(2)
    history.a_machine_is_replaced(0)
    history.an_operator_puts_a_revision_in_force(comes_up=False, etcd=6, **cannot)

    history.teardown()

    (master,) = history.world.masters
    assert history.world.healthy(master)
    assert master.mine == history.world.record.wanted == 4


def test_the_only_master_that_is_replaced_after_an_upgrade_ends_for_a_revision_that_needs_another_machine() -> None:
    """Nobody is elected to end the turn of the machine that is gone, and its own data is newer than what all ran."""
    history = AnyReplacementOfOneMaster()
    history.begin()
    history.an_operator_puts_a_revision_in_force(flags=1, comes_up=True, fixed=0, etcd=6)
    for _ in range(2):
        history.a_round(0)
    history.time_passes(2)
    history.a_machine_is_replaced(0)
    history.an_operator_has_machines_made_for_another_kind(comes_up=True)

    history.teardown()

    (master,) = history.world.masters
    assert history.world.healthy(master)


def test_the_only_master_that_is_replaced_after_an_upgrade_leaves_a_revision_that_does_not_come_up() -> None:
    """It took that one without a turn; the turn of the machine that is gone must not keep it from a better one."""
    history = AnyReplacementOfOneMaster()
    history.begin()
    history.an_operator_puts_a_revision_in_force(flags=1, comes_up=True, fixed=0, etcd=6)
    for _ in range(2):
        history.a_round(0)
    history.time_passes(2)
    history.a_machine_is_replaced(0)
    history.an_operator_puts_a_revision_in_force(flags=2, comes_up=False, fixed=0, etcd=6)

    history.teardown()

    (master,) = history.world.masters
    assert history.world.healthy(master)
