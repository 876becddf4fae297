"""What becomes of one name: what others put there stays, what is asked for comes, what nobody asks for may go.

The hard thing is that a CNAME stands alone. Whatever stays for now keeps its opposite out, so what may go has to be
known before what can come; and an old value that would go for a new one of its object stays if that one cannot come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from protokube.records import Record
from protokube.records.guard import Kind, Left, Removal
from protokube.records.owners import Mark, Owned

ADOPTED = "adopted"
"""Who asked for a value that was there before us and that a person gave to us."""
INHERITED = "agents"
"""Who asked for a value that the masters' agents put there before they left the name to us."""
MARK_FIRST = 1.0
"""Seconds, at least, from a mark for what the agents left to the moment when it may go."""

VALUE_TYPES = ("A", "AAAA", "CNAME")
TypeAndValue = tuple[str, str]


@dataclass(slots=True, kw_only=True)
class AtName:
    """What is there at a name, whose it is, and what is asked for."""

    name: str
    records: dict[str, Record]
    """A, AAAA, CNAME and TXT, by type."""
    marks: Record | None
    ours: set[Mark]
    theirs: set[Mark]
    """The marks of other owners."""
    wanted: set[Mark]
    """The marks as they would be if all that is asked for stood there."""
    adopt: str = ""
    """Who is put down for values that nobody marked and that become ours; nothing if they stay nobody's."""

    present: set[TypeAndValue] = field(init=False)
    unmarked: set[TypeAndValue] = field(init=False)
    """Nobody says whose these are: they stay for ever."""

    def __post_init__(self) -> None:
        self.present = {
            (kind, value) for kind, record in self.records.items() if kind != "TXT" for value in record.values
        }
        self.unmarked = self.present - held(self.ours) - held(self.theirs)

    def adopted(self) -> set[Mark]:
        """Marks for values that become ours without being asked for, so that they go as ours do."""
        if not (self.adopt and self.wanted):
            return set()
        owner = next(iter(self.wanted)).owner
        asked = held(self.wanted)
        return {Mark(owner=owner, type=t, value=v, by=self.adopt) for t, v in self.unmarked if (t, v) not in asked}


@dataclass(slots=True)
class Outcome:
    """What was decided for one name."""

    at: AtName
    come: set[Mark] = field(default_factory=set)
    """What is asked for and will stand there."""
    marks: set[Mark] = field(default_factory=set)
    """All of ours, afterwards."""
    removals: set[Mark] = field(default_factory=set)
    """Go because nobody asks for them."""
    replaced: set[Mark] = field(default_factory=set)
    """Go because their object has something new here."""
    passed: set[Mark] = field(default_factory=set)
    """Their values stay, for another object."""
    absent: dict[Owned, float] = field(default_factory=dict)
    grace_ends: list[float] = field(default_factory=list)
    """When those that wait may go."""
    left: set[Left] = field(default_factory=set)
    settled: bool = False
    """All is as asked for, but perhaps for a TTL."""

    @property
    def lost(self) -> set[TypeAndValue]:
        """The values of ours that go without anything in their place."""
        return held(self.removals) - held(self.marks)

    def leave(self, kind: Kind, why: str, *by: str) -> None:
        self.left.add(Left(name=self.at.name, kind=kind, why=why, by=tuple(sorted(by))))


def held(marks: Iterable[Mark]) -> set[TypeAndValue]:
    return {(mark.type, mark.value) for mark in marks}


def decide(at: AtName, removal: Removal, too_many: str = "") -> Outcome:
    """`too_many` says why nothing may go this time that merely is asked for by nobody."""
    if at.ours == at.wanted and not at.adopt and held(at.wanted) <= at.present:  # nearly always, so it is cheap
        return Outcome(at, come=at.wanted, marks=at.wanted, settled=True)
    news = _news(at.wanted - at.ours)
    while True:
        outcome = _outcome(at, removal, too_many, news)
        came = _news((outcome.come | _right(at)) - at.ours)
        if all(_is_followed(mark, came) for mark in outcome.replaced):
            return outcome
        news &= came


def _news(marks: Iterable[Mark]) -> set[tuple[str, str]]:
    """Who has something new, of which type."""
    return {(_asker(mark.by), mark.type) for mark in marks}


def _is_followed(mark: Mark, news: set[tuple[str, str]]) -> bool:
    """Whether its object has something new in its place: of the same type, or of one that cannot stand beside it."""
    types = VALUE_TYPES if mark.type == "CNAME" else (mark.type, "CNAME")
    return any((_asker(mark.by), kind) in news for kind in types)


def _asker(by: str) -> str:
    """Who speaks for a value. A pod is on one node at a time; a service has the addresses of many at once."""
    return by.partition(">")[0] if by.startswith("pod/") else by


def _right(at: AtName) -> set[Mark]:
    """Asked for and there already by somebody else's hand: nothing to do, and nothing of it becomes ours."""
    return set() if at.adopt else {mark for mark in at.wanted if (mark.type, mark.value) in at.unmarked}


def _outcome(at: AtName, removal: Removal, too_many: str, news: set[tuple[str, str]]) -> Outcome:
    outcome = Outcome(at)
    mine, asked = at.ours | at.adopted(), held(at.wanted)
    stays: set[Mark] = set()
    for mark in sorted(mine - at.wanted):
        line = Owned(at.name, mark)
        if why := removal.why_never(line):
            _hold(outcome, line, why)
            if line in removal.absent_since:
                outcome.absent[line] = removal.since(line)
        elif (mark.type, mark.value) in asked:
            outcome.passed.add(mark)
            continue
        elif (mark.type, mark.value) not in at.present:
            continue  # there is nothing to lose
        elif _is_followed(mark, news):
            outcome.replaced.add(mark)
            continue
        elif _may_go(outcome, line, removal, too_many):
            outcome.removals.add(mark)
            continue
        stays.add(mark)
    outcome.come = _come(outcome, held(stays) & at.present)
    outcome.marks = stays | (at.ours & at.wanted) | outcome.come
    return outcome


def _may_go(outcome: Outcome, line: Owned, removal: Removal, too_many: str) -> bool:
    """Whether a value that nobody asks for goes now. What the agents left is marked first, for everybody to see."""
    grace_ends = removal.grace_ends(line)
    if line.mark.by == INHERITED and line.mark not in outcome.at.ours:
        grace_ends = removal.now + max(removal.grace, MARK_FIRST)
    else:
        outcome.absent[line] = removal.since(line)
    if grace_ends > removal.now:
        outcome.grace_ends.append(grace_ends)
        told = f"{line.mark.type} {line.mark.value}"
        outcome.leave("waits", f"{told} is asked for by nobody and goes after the grace time", line.mark.by)
        return False
    if too_many and line not in removal.exempt:
        _hold(outcome, line, too_many)
        return False
    return True


def _hold(outcome: Outcome, line: Owned, why: str) -> None:
    outcome.leave("held", f"{line.mark.type} {line.mark.value} stays: {why}", line.mark.by)


def _come(outcome: Outcome, staying: set[TypeAndValue]) -> set[Mark]:
    """The marks of what is asked for and can stand there. What stands there has the first right, then what is ours."""
    at, right = outcome.at, _right(outcome.at)
    ours = held(at.ours)
    foreign = (at.present & held(at.theirs)) | (set() if at.adopt else at.unmarked)
    standing = foreign | staying
    aliases = {value for value in standing if value[0] == "CNAME"}
    come: set[Mark] = set()
    asked = [((mark.type, mark.value), mark) for mark in at.wanted - right]
    for value, mark in sorted(asked, key=lambda each: (each[0] not in at.present, each[0] not in ours, each[1])):
        # a CNAME stands alone
        if clash := min((standing if mark.type == "CNAME" else aliases) - {value}, default=None):
            _tell_clash(outcome, mark, clash, foreign, staying)
        elif mark.type == "CNAME" and "TXT" in at.records:
            outcome.leave("refused", f"CNAME {mark.value} cannot stand beside the TXT record there", mark.by)
        elif value not in at.present and (why := _why_foreign(at, mark.type)):
            outcome.leave("refused", why, mark.by)
        else:
            come.add(mark)
            standing.add(value)
            if mark.type == "CNAME":
                aliases.add(value)
    for mark in right:
        outcome.leave("right", f"{mark.type} {mark.value} stands there already, and is not ours", mark.by)
    return come


def _tell_clash(
    outcome: Outcome, mark: Mark, clash: TypeAndValue, foreign: set[TypeAndValue], staying: set[TypeAndValue]
) -> None:
    told = f"{mark.type} {mark.value} cannot stand beside {' '.join(clash)}"
    owners = sorted({other.owner for other in outcome.at.theirs if (other.type, other.value) == clash})
    if clash in staying and clash not in foreign:
        outcome.leave("waits", f"{told}, which is ours and has to go first", mark.by)
    elif owners:
        outcome.leave("refused", f"{told}, which is put there by {', '.join(owners)}", mark.by)
    elif clash in foreign:
        outcome.leave("refused", f"{told}, which is there and not ours", mark.by)
    else:
        outcome.leave("refused", f"{told}, which is asked for as well", mark.by)


def _why_foreign(at: AtName, kind: str) -> str:
    """Why nothing new may be put there: all there is was made by others, and no owner marked any of it."""
    marked = {mark.type for mark in at.ours | at.theirs}
    if at.adopt or not at.unmarked or kind in marked:
        return ""
    record = at.records.get(kind) or (None if marked else next(iter(at.records.values())))
    return f"{record.type} {', '.join(record.values)} is there and not ours" if record else ""
