"""What this master does next about the revision that is in force. Pure: one function, one action.

A revision that restarts something is taken by one master at a time, and only while all others are healthy. It ends when
everything that this master runs is healthy again; if that does not happen, the rollout stops and this master returns to
the revision that it ran before.

Where the wanted revision needs another kind of machine, this one ends in its turn, and the cloud makes another in its
place, which takes over its disks. The elected master ends the turn of the machine that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from protokube.launch.rollout import HINT, Rollout, State, Turn

UNFINISHED = "run `protokube up` again as before: it completes what was interrupted"


@dataclass(frozen=True, slots=True)
class Nothing:
    """This master runs what it should."""


@dataclass(frozen=True, slots=True)
class Wait:
    why: str


@dataclass(frozen=True, slots=True)
class Person:
    """Only a person can go on."""

    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class TakeTurn:
    """Write this master into the record."""

    restarts: tuple[str, ...]
    leaves: bool = False
    """It ends its machine then."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Run this revision from now on."""

    number: int


@dataclass(frozen=True, slots=True)
class Leave:
    """End this machine, so that another one takes its place."""


@dataclass(frozen=True, slots=True)
class EndTurn:
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the rollout here, because the wanted revision does not come up."""

    text: str


@dataclass(frozen=True, slots=True)
class GoBack:
    """Run the former revision again."""


@dataclass(frozen=True, slots=True)
class Free:
    """End the turn of a machine that does not exist any more."""

    name: str


@dataclass(frozen=True, slots=True)
class Complete:
    """Every master runs the wanted revision."""


Action = Nothing | Wait | Person | TakeTurn | Switch | Leave | EndTurn | Stop | GoBack | Free | Complete


class Sight(Protocol):
    """What this master sees. Each method looks when it is called: an idle master asks nobody."""

    @property
    def machine(self) -> str: ...

    @property
    def mine(self) -> int:
        """The revision that this master runs."""

    @property
    def made_for(self) -> int:
        """The revision in the launch data of this machine."""

    @property
    def former(self) -> int | None:
        """The one that it ran before, if it can return to it."""

    def restarts(self) -> tuple[str, ...]:
        """What has to restart here for the wanted revision. TryLater if it cannot be read now."""

    def forbidden(self) -> tuple[str, ...]:
        """What the wanted revision changes and no living cluster can change."""

    def misfit(self) -> bool:
        """Whether only another machine, made for it, can run the wanted revision."""

    def idle(self) -> bool:
        """Whether neither etcd nor an API server has worked on this machine for a while: nobody would miss it."""

    def stays(self) -> str:
        """Why this machine must not end now, by the state of the other masters; "" if it may."""

    def outdated(self) -> str:
        """What does not start here, because its data is too new for the present revision and not for the wanted one."""

    def no_way_back(self) -> str:
        """Why the revision that it ran before cannot run here any more; "" if it can."""

    def others(self) -> str:
        """Why nothing may restart here now, by the state of the other masters; "" if it may."""

    def own(self) -> str:
        """What on this master is not healthy with the revision that it runs; "" if everything is."""

    def broken(self) -> str:
        """What did not come up for so long that it will not, and what it logged; "" while that may still happen."""

    def turn_is_gone(self) -> bool:
        """Whether the machine whose turn it is certainly does not exist any more."""

    def elected(self) -> bool: ...

    def behind(self) -> str:
        """Which masters do not run the wanted revision, or do not report; "" if all run it."""


def decide(record: Rollout, sight: Sight) -> Action:
    if sight.mine != record.wanted and sight.misfit():
        return _on_another_machine(record, sight)
    if record.state is State.ROLLING and _is_stranded(record, sight):
        return _unless_forbidden(record, sight, Switch(record.wanted))
    if sight.mine != record.wanted and (what := sight.outdated()):
        return _catch_up(record, sight, what)
    if record.turn is None:
        return _without_turn(record, sight)
    if record.turn.machine == sight.machine:
        return _in_turn(record, sight)
    return _in_anothers_turn(record, sight)


def _on_another_machine(record: Rollout, sight: Sight) -> Action:
    """A machine leaves only for a later revision than the one it was made for: its successor is made for that.

    Before `up` puts such a revision in force, it has the cloud make machines for it. If that command was killed in
    between, a machine that was replaced meanwhile is made for a revision that is not in force yet. It would leave for
    one of the same kind, again and again.
    """
    if record.state is State.ROLLING and sight.made_for < record.wanted and _is_stranded(record, sight):
        return _unless_forbidden(record, sight, Leave())
    if record.turn is not None and record.turn.machine != sight.machine:
        return _in_anothers_turn(record, sight)
    if record.state is State.STOPPED:
        return _in_turn(record, sight) if record.turn else _stopped(record, sight)
    if sight.made_for >= record.wanted:
        text = f"this machine was made for revision {sight.made_for}, which is not in force"
        return EndTurn(text) if record.turn else Person(text, UNFINISHED)
    if forbidden := sight.forbidden():
        text = f"revision {record.wanted} cannot be taken: {'; '.join(forbidden)}"
        return EndTurn(text) if record.turn else Person(text, HINT)
    if why := sight.stays():
        return Wait(f"revision {record.wanted} needs another machine in place of this one: {why}")
    return Leave() if record.turn else TakeTurn(sight.restarts(), leaves=True)


def _is_stranded(record: Rollout, sight: Sight) -> bool:
    """Whether nothing works here, on a machine that was made for a revision which never ran everywhere.

    It needs no turn, since nothing that a turn would protect runs here. Others may be waiting for it: with two such
    machines there is no quorum, and without one nobody ends the turn of a machine that is gone.
    """
    proven = record.at_boot()
    return sight.mine not in (record.wanted, proven) and sight.made_for > proven and sight.idle()


def _unless_forbidden(record: Rollout, sight: Sight, action: Action) -> Action:
    if forbidden := sight.forbidden():
        return Person(f"revision {record.wanted} cannot be taken: {'; '.join(forbidden)}", HINT)
    return action


def _catch_up(record: Rollout, sight: Sight, what: str) -> Action:
    """Without a turn, and also if the rollout stopped: nothing that a turn would protect runs here.

    Such a machine was replaced, or returned, after all members had run a newer etcd. Others may be waiting for it: with
    two of them there is no quorum.
    """
    if record.state is State.STOPPED and record.turn and record.turn.machine == sight.machine:
        return EndTurn(f"cannot stay on revision {sight.mine}: the data of {what} is newer")
    if forbidden := sight.forbidden():
        return Person(f"revision {record.wanted} cannot be taken: {'; '.join(forbidden)}", HINT)
    why = sight.others()
    return Wait(f"revision {record.wanted}: {why}") if why else Switch(record.wanted)


def _in_turn(record: Rollout, sight: Sight) -> Action:
    if record.state is State.STOPPED and record.failure is not None and sight.mine == record.failure.revision:
        return _back(sight)
    if record.state is State.STOPPED:
        why = sight.own()
        return Wait(f"back on revision {sight.mine}: {why}") if why else EndTurn(f"is back on revision {sight.mine}")
    if sight.mine == record.wanted:
        if not (why := sight.own()):
            return EndTurn(f"runs revision {sight.mine}")
        if text := sight.broken():
            return Stop(text)
        return Wait(f"revision {sight.mine} comes up: {why}")
    if record.turn and _is_unproven(record.turn, sight) and not sight.no_way_back():
        return GoBack()
    if forbidden := sight.forbidden():
        return EndTurn(f"cannot take revision {record.wanted}: {'; '.join(forbidden)}")
    why = sight.others()
    return Wait(f"revision {record.wanted}: {why}") if why else Switch(record.wanted)


def _back(sight: Sight) -> Action:
    if sight.former in (None, sight.mine):
        return EndTurn("has no revision to return to")
    why = sight.no_way_back()
    return EndTurn(f"stays on revision {sight.mine}: {why}") if why else GoBack()


def _is_unproven(turn: Turn, sight: Sight) -> bool:
    """Whether this master is on a revision of an earlier attempt that is not healthy: no other must have that one as
    its way back."""
    return sight.mine != turn.revision == sight.former and bool(sight.own())


def _in_anothers_turn(record: Rollout, sight: Sight) -> Action:
    """Without a quorum nobody is elected: then a master on which nothing works ends the turn of one that is gone."""
    assert record.turn is not None
    if (sight.elected() or (sight.mine != record.wanted and sight.idle())) and sight.turn_is_gone():
        return Free(record.turn.name)
    if record.state is State.STOPPED:
        return _stopped(record, sight)
    if sight.mine == record.wanted:
        return Nothing()
    return Wait(f"revision {record.wanted}: {record.turn.name} restarts first")


def _without_turn(record: Rollout, sight: Sight) -> Action:
    if record.state is State.STOPPED:
        return _stopped(record, sight)
    if sight.mine == record.wanted:
        return _finished(record, sight)
    if forbidden := sight.forbidden():
        return Person(f"revision {record.wanted} cannot be taken: {'; '.join(forbidden)}", HINT)
    restarts = sight.restarts()
    if not restarts:
        return Switch(record.wanted)
    why = sight.others()
    return Wait(f"revision {record.wanted}: {why}") if why else TakeTurn(restarts)


def _finished(record: Rollout, sight: Sight) -> Action:
    if record.state is State.DONE or not sight.elected():
        return Nothing()
    behind = sight.behind()
    return Wait(f"revision {record.wanted}: {behind}") if behind else Complete()


def _stopped(record: Rollout, sight: Sight) -> Action:
    """Reported by the elected master alone: each would report the same."""
    if record.failure is None or not sight.elected():
        return Nothing()
    return Person(str(record.failure), HINT)
