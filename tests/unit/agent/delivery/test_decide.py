"""What a master does next about the revision in force: one row of the table after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.agent.delivery.decide import (
    UNFINISHED,
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
from protokube.launch.rollout import HINT, Failure, Rollout, State, Turn

ME, OTHER = "i-1", "i-2"
MINE = Turn(machine=ME, name="master-a", at=10.0, revision=1)
THEIRS = Turn(machine=OTHER, name="master-b", at=10.0)
FAILURE = Failure(machine=OTHER, name="master-b", revision=2, text="etcd: it does not run")
ETCD = ("etcd main",)


@dataclass
class Sees:
    """What a master sees, as the test sets it, and what it asked for."""

    mine: int = 1
    former: int | None = None
    restarting: tuple[str, ...] = ETCD
    fixed: tuple[str, ...] = ()
    elsewhere: str = ""
    unhealthy: str = ""
    given_up: str = ""
    gone: bool = False
    is_elected: bool = False
    late: str = ""
    one_way: str = ""
    too_new: str = ""
    other_machine: bool = False
    made_for: int = 1
    nothing_works: bool = False
    asked: list[str] = field(default_factory=list)
    machine: str = ME

    def misfit(self) -> bool:
        return self.other_machine

    def idle(self) -> bool:
        return self.nothing_works

    def stays(self) -> str:
        self.asked.append("stays")
        return self.elsewhere

    def restarts(self) -> tuple[str, ...]:
        self.asked.append("restarts")
        return self.restarting

    def forbidden(self) -> tuple[str, ...]:
        self.asked.append("forbidden")
        return self.fixed

    def outdated(self) -> str:
        self.asked.append("outdated")
        return self.too_new

    def no_way_back(self) -> str:
        self.asked.append("no way back")
        return self.one_way

    def others(self) -> str:
        self.asked.append("others")
        return self.elsewhere

    def own(self) -> str:
        self.asked.append("own")
        return self.unhealthy

    def broken(self) -> str:
        self.asked.append("broken")
        return self.given_up

    def turn_is_gone(self) -> bool:
        self.asked.append("turn is gone")
        return self.gone

    def elected(self) -> bool:
        self.asked.append("elected")
        return self.is_elected

    def behind(self) -> str:
        self.asked.append("behind")
        return self.late


def a_record(state: State = State.ROLLING, turn: Turn | None = None, **fields: Any) -> Rollout:
    failure = FAILURE if state is State.STOPPED else None
    return Rollout(**{"wanted": 2, "before": 1, "state": state, "turn": turn, "failure": failure, **fields})


ROLLING, DONE, STOPPED = State.ROLLING, State.DONE, State.STOPPED
STOPPED_TEXT = "revision 2 stopped at master-b: etcd: it does not run"
ROWS: list[tuple[str, Rollout, Sees, Action]] = [
    # nobody's turn
    ("all is done", a_record(DONE), Sees(mine=2), Nothing()),
    ("all is done, as the elected sees it", a_record(DONE), Sees(mine=2, is_elected=True), Nothing()),
    ("mine is a new one and so is theirs", a_record(), Sees(mine=2), Nothing()),
    ("the elected waits for the others", a_record(), Sees(mine=2, is_elected=True, late="c does not run it yet"),
     Wait("revision 2: c does not run it yet")),
    ("the elected ends it", a_record(), Sees(mine=2, is_elected=True), Complete()),
    ("a new one", a_record(), Sees(), TakeTurn(ETCD)),
    ("a new one that restarts nothing", a_record(), Sees(restarting=()), Switch(2)),
    ("a new one that restarts nothing, with another in trouble", a_record(), Sees(restarting=(), elsewhere="no"),
     Switch(2)),
    ("a new one, with another in trouble", a_record(), Sees(elsewhere="etcd-b does not answer"),
     Wait("revision 2: etcd-b does not answer")),
    ("a new one that cannot be taken", a_record(), Sees(fixed=("the cluster name: a -> b", "the pods: c -> d")),
     Person("revision 2 cannot be taken: the cluster name: a -> b; the pods: c -> d", HINT)),
    ("one that was done while this master was away", a_record(DONE), Sees(), TakeTurn(ETCD)),
    ("it stopped elsewhere", a_record(STOPPED), Sees(), Nothing()),
    ("it stopped elsewhere, as the elected says", a_record(STOPPED), Sees(is_elected=True),
     Person(STOPPED_TEXT, HINT)),
    ("it stopped after I had taken it", a_record(STOPPED), Sees(mine=2, former=1), Nothing()),
    ("it stopped for no known reason", a_record(STOPPED, failure=None), Sees(is_elected=True), Nothing()),
    # the turn of another
    ("another restarts first", a_record(turn=THEIRS), Sees(), Wait("revision 2: master-b restarts first")),
    ("another restarts first, whatever it would restart here", a_record(turn=THEIRS), Sees(restarting=()),
     Wait("revision 2: master-b restarts first")),
    ("another restarts after me", a_record(turn=THEIRS), Sees(mine=2), Nothing()),
    ("another is gone", a_record(turn=THEIRS), Sees(gone=True), Wait("revision 2: master-b restarts first")),
    ("another is gone, as the elected sees it", a_record(turn=THEIRS), Sees(gone=True, is_elected=True),
     Free("master-b")),
    ("another is gone after it stopped", a_record(STOPPED, THEIRS), Sees(gone=True, is_elected=True), Free("master-b")),
    ("another is gone after all was done", a_record(DONE, THEIRS), Sees(mine=2, gone=True, is_elected=True),
     Free("master-b")),
    ("another hangs in its turn", a_record(turn=THEIRS), Sees(mine=2, is_elected=True), Nothing()),
    ("another returns", a_record(STOPPED, THEIRS), Sees(), Nothing()),
    ("another returns, as the elected says", a_record(STOPPED, THEIRS), Sees(mine=2, is_elected=True),
     Person(STOPPED_TEXT, HINT)),
    # my turn
    ("I begin", a_record(turn=MINE), Sees(), Switch(2)),
    ("I begin when the others are well", a_record(turn=MINE), Sees(elsewhere="etcd-b is a learner"),
     Wait("revision 2: etcd-b is a learner")),
    ("mine comes up", a_record(turn=MINE), Sees(mine=2, former=1, unhealthy="etcd: it has not restarted yet"),
     Wait("revision 2 comes up: etcd: it has not restarted yet")),
    ("mine is up", a_record(turn=MINE), Sees(mine=2, former=1), EndTurn("runs revision 2")),
    ("mine is up, though it took long", a_record(turn=MINE), Sees(mine=2, former=1, given_up="late"),
     EndTurn("runs revision 2")),
    ("mine does not come up", a_record(turn=MINE), Sees(mine=2, former=1, unhealthy="etcd", given_up="etcd after 60 s"),
     Stop("etcd after 60 s")),
    ("mine was stopped", a_record(STOPPED, MINE), Sees(mine=2, former=1, unhealthy="etcd"), GoBack()),
    ("mine was stopped, and I have no other", a_record(STOPPED, MINE), Sees(mine=2, unhealthy="etcd"),
     EndTurn("has no revision to return to")),
    ("mine was stopped, and the former is the same", a_record(STOPPED, MINE), Sees(mine=2, former=2),
     EndTurn("has no revision to return to")),
    ("mine was stopped, and its data is too new for the former", a_record(STOPPED, MINE),
     Sees(mine=2, former=1, unhealthy="etcd", one_way="3.4 cannot read it"),
     EndTurn("stays on revision 2: 3.4 cannot read it")),
    ("I am back and not up yet", a_record(STOPPED, MINE), Sees(mine=1, unhealthy="etcd"),
     Wait("back on revision 1: etcd")),
    ("I am back and up", a_record(STOPPED, MINE), Sees(mine=1), EndTurn("is back on revision 1")),
    ("I am back, and it is tried again", a_record(turn=MINE), Sees(mine=1, former=1), Switch(2)),
    ("I took it and another was put in force", a_record(turn=MINE, wanted=3), Sees(mine=2, former=1), Switch(3)),
    ("I took it, it is not up yet and another was put in force", a_record(turn=MINE, wanted=3),
     Sees(mine=2, former=1, unhealthy="etcd"), GoBack()),
    ("I took it, its data is too new for the former and another was put in force", a_record(turn=MINE, wanted=3),
     Sees(mine=2, former=1, unhealthy="etcd", one_way="3.4 cannot read it"), Switch(3)),
    ("I am back for the one put in force meanwhile", a_record(turn=MINE, wanted=3),
     Sees(mine=1, former=2, unhealthy="etcd"), Switch(3)),
    ("I took it, it is not up yet and I have no other", a_record(turn=MINE, wanted=3), Sees(mine=2, unhealthy="etcd"),
     Switch(3)),
    ("another was put in force that cannot be taken", a_record(turn=MINE, wanted=3), Sees(fixed=("the pods: c -> d",)),
     EndTurn("cannot take revision 3: the pods: c -> d")),
    # its etcd has newer data than its program reads
    ("a new machine cannot run what it began with", a_record(), Sees(too_new="etcd main"), Switch(2)),
    ("a new machine cannot run it in the turn of another", a_record(turn=THEIRS), Sees(too_new="etcd main"), Switch(2)),
    ("a new machine cannot run it after all was stopped", a_record(STOPPED), Sees(too_new="etcd main"), Switch(2)),
    ("a new machine cannot run it, and another cluster of etcd is in trouble", a_record(),
     Sees(too_new="etcd main", elsewhere="etcd-events-b is a learner"), Wait("revision 2: etcd-events-b is a learner")),
    ("a new machine can run neither", a_record(), Sees(too_new="etcd main", fixed=("the pods: c -> d",)),
     Person("revision 2 cannot be taken: the pods: c -> d", HINT)),
    ("I restarted in my turn, and cannot run what I began with", a_record(turn=MINE), Sees(too_new="etcd main"),
     Switch(2)),
    ("I am back, and cannot run that any more", a_record(STOPPED, MINE), Sees(mine=1, too_new="etcd main"),
     EndTurn("cannot stay on revision 1: the data of etcd main is newer")),
    ("I run the wanted one", a_record(turn=MINE), Sees(mine=2, too_new="etcd main"), EndTurn("runs revision 2")),
    ("my turn ends also after all was done", a_record(DONE, MINE), Sees(mine=2), EndTurn("runs revision 2")),
    # it needs another machine than this one
    ("another machine takes my place", a_record(), Sees(other_machine=True), TakeTurn(ETCD, leaves=True)),
    ("another machine takes my place, in my turn", a_record(turn=MINE), Sees(other_machine=True), Leave()),
    ("I stay while another is in trouble", a_record(), Sees(other_machine=True, elsewhere="2 of 3 masters are up"),
     Wait("revision 2 needs another machine in place of this one: 2 of 3 masters are up")),
    ("I stay while another is in trouble, in my turn", a_record(turn=MINE),
     Sees(other_machine=True, elsewhere="etcd-b is a learner"),
     Wait("revision 2 needs another machine in place of this one: etcd-b is a learner")),
    ("I stay while another is replaced", a_record(turn=THEIRS), Sees(other_machine=True),
     Wait("revision 2: master-b restarts first")),
    ("another was replaced", a_record(turn=THEIRS), Sees(other_machine=True, gone=True, is_elected=True),
     Free("master-b")),
    ("I stay after it stopped", a_record(STOPPED), Sees(other_machine=True), Nothing()),
    ("I stay after it stopped in my turn", a_record(STOPPED, MINE), Sees(other_machine=True),
     EndTurn("is back on revision 1")),
    ("I was made for a revision that is not in force yet", a_record(DONE, wanted=1),
     Sees(mine=2, made_for=2, other_machine=True),
     Person("this machine was made for revision 2, which is not in force", UNFINISHED)),
    ("I was made for a revision that is not in force yet, in my turn", a_record(wanted=1, turn=MINE),
     Sees(mine=2, made_for=2, other_machine=True),
     EndTurn("this machine was made for revision 2, which is not in force")),
    ("I was made for a revision that was given up, and run another", a_record(), Sees(made_for=3, other_machine=True),
     Person("this machine was made for revision 3, which is not in force", UNFINISHED)),
    ("nothing works here, and I was made for an attempt before", a_record(turn=THEIRS, wanted=3, before=1),
     Sees(mine=2, made_for=2, nothing_works=True, elsewhere="no quorum"), Switch(3)),
    ("nothing works here, and the next attempt needs another machine", a_record(turn=THEIRS, wanted=3, before=1),
     Sees(mine=2, made_for=2, nothing_works=True, elsewhere="no quorum", other_machine=True), Leave()),
    ("nothing works here, and the next attempt stopped", a_record(STOPPED, wanted=3, before=1),
     Sees(mine=2, made_for=2, nothing_works=True, other_machine=True), Nothing()),
    ("nothing works here, and I run what all others ran", a_record(), Sees(nothing_works=True, elsewhere="no quorum"),
     Wait("revision 2: no quorum")),
    ("nothing works here, and the next attempt cannot be taken", a_record(wanted=3, before=1),
     Sees(mine=2, made_for=2, nothing_works=True, fixed=("the pods: c -> d",)),
     Person("revision 3 cannot be taken: the pods: c -> d", HINT)),
    ("no machine can take it", a_record(), Sees(other_machine=True, fixed=("the pods: c -> d",)),
     Person("revision 2 cannot be taken: the pods: c -> d", HINT)),
    ("no machine can take it, in my turn", a_record(turn=MINE), Sees(other_machine=True, fixed=("the pods: c -> d",)),
     EndTurn("revision 2 cannot be taken: the pods: c -> d")),
    ("my data is newer, and another machine is needed", a_record(), Sees(other_machine=True, too_new="etcd main"),
     TakeTurn(ETCD, leaves=True)),
]  # fmt: skip


@pytest.mark.parametrize(("record", "sees", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_row_of_the_table(record: Rollout, sees: Sees, expected: Action) -> None:
    assert decide(record, sees) == expected


def test_an_idle_master_asks_nobody() -> None:
    sees = Sees(mine=2)
    decide(a_record(DONE), sees)

    assert sees.asked == []


def test_only_the_elected_master_asks_the_provider_for_the_machine_whose_turn_it_is() -> None:
    sees = Sees()
    decide(a_record(turn=THEIRS), sees)

    assert sees.asked == ["outdated", "elected"]


words = st.sampled_from(["", "etcd: it does not run"])
sights = st.builds(
    Sees,
    mine=st.integers(1, 3),
    former=st.none() | st.integers(1, 3),
    restarting=st.sampled_from([(), ETCD]),
    fixed=st.sampled_from([(), ("the pods: c -> d",)]),
    elsewhere=words,
    unhealthy=words,
    given_up=words,
    gone=st.booleans(),
    is_elected=st.booleans(),
    late=words,
    one_way=words,
    too_new=words,
    other_machine=st.booleans(),
    made_for=st.integers(1, 3),
    nothing_works=st.booleans(),
)
records = st.builds(
    a_record,
    st.sampled_from(State),
    st.sampled_from([None, MINE, THEIRS]),
    wanted=st.integers(1, 3),
    before=st.integers(0, 3),
)


@given(records, sights)
@examples(300)
def test_nobody_restarts_anything_in_the_turn_of_another_or_while_another_is_in_trouble(
    record: Rollout, sees: Sees
) -> None:
    action = decide(record, sees)

    if isinstance(action, Switch) and sees.restarting:
        assert record.turn == MINE or sees.too_new or sees.nothing_works
    if isinstance(action, Switch | TakeTurn | Leave) and (sees.restarting or sees.other_machine):
        assert sees.nothing_works or not sees.elsewhere
        assert not sees.fixed
    if isinstance(action, GoBack | Stop | EndTurn):
        assert record.turn == MINE
    if isinstance(action, Leave):
        assert record.turn == MINE or sees.nothing_works
        assert sees.other_machine
    if isinstance(action, TakeTurn | Complete):
        assert record.turn is None
    if isinstance(action, Complete):
        assert sees.is_elected
    if isinstance(action, Free):
        assert sees.gone
        assert sees.is_elected or sees.nothing_works


@given(records, sights)
@examples(300)
def test_no_action_leads_to_where_it_came_from(record: Rollout, sees: Sees) -> None:
    match decide(record, sees):
        case Switch(number):
            assert number == record.wanted != sees.mine
            assert not sees.other_machine
            assert record.state is not STOPPED or sees.too_new
        case Leave():
            assert record.state is not STOPPED
            assert record.wanted > sees.made_for, "its successor would be made for the same"
        case GoBack():
            assert sees.former not in (None, sees.mine)
            assert not sees.one_way
        case Stop():
            assert record.state is not STOPPED
        case Complete():
            assert record.state is ROLLING
        case _:
            pass
