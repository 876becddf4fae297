"""Plan one DNS name: keep foreign values, add wanted ones, remove our unwanted ones.

The hard part is that a CNAME excludes all other values. A value that stays blocks a conflicting new one, so removals
must be decided before additions. An old value that its object replaces by a new one stays if the new one is blocked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from protokube.records import Record
from protokube.records.guard import Kind, Left, Removal
from protokube.records.owners import Mark, Owned

ADOPTED = "adopted"
"""The `by` of a mark for a value that existed before us and that a user asked us to adopt."""
INHERITED = "agents"
"""The `by` of a mark for a value that the masters' agents wrote before they gave the name up."""
MARK_FIRST = 1.0
"""Seconds, at least, for which a value left by the agents carries our mark before it may be removed."""

VALUE_TYPES = ("A", "AAAA", "CNAME")
TypeAndValue = tuple[str, str]


@dataclass(slots=True, kw_only=True)
class AtName:
    """The records at a name, their owners, and the wanted values."""

    name: str
    records: dict[str, Record]
    """A, AAAA, CNAME and TXT, by type."""
    marks: Record | None
    ours: set[Mark]
    theirs: set[Mark]
    """The marks of other owners."""
    wanted: set[Mark]
    """The marks that we would have if every requested value were there."""
    adopt: str = ""
    """The `by` of the marks for unowned values that become ours; empty if they stay unowned."""

    present: set[TypeAndValue] = field(init=False)
    unmarked: set[TypeAndValue] = field(init=False)
    """Unowned values: we never remove these."""

    def __post_init__(self) -> None:
        self.present = {
            (kind, value) for kind, record in self.records.items() if kind != "TXT" for value in record.values
        }
        self.unmarked = self.present - held(self.ours) - held(self.theirs)

    def adopted(self) -> set[Mark]:
        """Marks for adopted values that no object asks for, so that they are removed like ours."""
        if not (self.adopt and self.wanted):
            return set()
        owner = next(iter(self.wanted)).owner
        asked = held(self.wanted)
        return {Mark(owner=owner, type=t, value=v, by=self.adopt) for t, v in self.unmarked if (t, v) not in asked}


@dataclass(slots=True)
class Outcome:
    """The decision for one name."""

    at: AtName
    come: set[Mark] = field(default_factory=set)
    """Requested values that will be there."""
    marks: set[Mark] = field(default_factory=set)
    """All our marks after the change."""
    removals: set[Mark] = field(default_factory=set)
    """Removed because no object asks for them."""
    replaced: set[Mark] = field(default_factory=set)
    """Removed because their object has a new value here."""
    passed: set[Mark] = field(default_factory=set)
    """Marks that are removed while their values stay, for another object."""
    absent: dict[Owned, float] = field(default_factory=dict)
    grace_ends: list[float] = field(default_factory=list)
    """When the waiting values may be removed."""
    left: set[Left] = field(default_factory=set)
    settled: bool = False
    """Everything is as requested, except perhaps a TTL."""

    @property
    def lost(self) -> set[TypeAndValue]:
        """Our values that are removed without a replacement."""
        return held(self.removals) - held(self.marks)

    def leave(self, kind: Kind, why: str, *by: str) -> None:
        self.left.add(Left(name=self.at.name, kind=kind, why=why, by=tuple(sorted(by))))


def held(marks: Iterable[Mark]) -> set[TypeAndValue]:
    return {(mark.type, mark.value) for mark in marks}


def decide(at: AtName, removal: Removal, too_many: str = "") -> Outcome:
    """Decide for one name. `too_many` is the reason why no unrequested value may be removed in this plan, if any."""
    if at.ours == at.wanted and not at.adopt and held(at.wanted) <= at.present:  # the usual case, so it is cheap
        return Outcome(at, come=at.wanted, marks=at.wanted, settled=True)
    news = _news(at.wanted - at.ours)
    while True:
        outcome = _outcome(at, removal, too_many, news)
        came = _news((outcome.come | _right(at)) - at.ours)
        if all(_is_followed(mark, came) for mark in outcome.replaced):
            return outcome
        news &= came


def _news(marks: Iterable[Mark]) -> set[tuple[str, str]]:
    """The objects that have a new value, each with its type."""
    return {(_asker(mark.by), mark.type) for mark in marks}


def _is_followed(mark: Mark, news: set[tuple[str, str]]) -> bool:
    """Whether its object has a new value in its place: of the same type, or of one that conflicts with it."""
    types = VALUE_TYPES if mark.type == "CNAME" else (mark.type, "CNAME")
    return any((_asker(mark.by), kind) in news for kind in types)


def _asker(by: str) -> str:
    """The identity by which values replace one another. A pod is on one node at a time, so its node does not count; a
    service has the addresses of many nodes at once, so it does."""
    return by.partition(">")[0] if by.startswith("pod/") else by


def _right(at: AtName) -> set[Mark]:
    """Requested values that already exist and are unowned: there is nothing to write, and they do not become ours."""
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
            continue  # the value is gone already, so its mark may go too
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
    """Whether an unrequested value is removed now. A value left by the agents must carry our mark first."""
    grace_ends = removal.grace_ends(line)
    if line.mark.by == INHERITED and line.mark not in outcome.at.ours:
        grace_ends = removal.now + max(removal.grace, MARK_FIRST)
    else:
        outcome.absent[line] = removal.since(line)
    if grace_ends > removal.now:
        outcome.grace_ends.append(grace_ends)
        value = f"{line.mark.type} {line.mark.value}"
        outcome.leave("waits", f"{value} is asked for by nobody and goes after the grace time", line.mark.by)
        return False
    if too_many and line not in removal.exempt:
        _hold(outcome, line, too_many)
        return False
    return True


def _hold(outcome: Outcome, line: Owned, why: str) -> None:
    outcome.leave("held", f"{line.mark.type} {line.mark.value} stays: {why}", line.mark.by)


def _come(outcome: Outcome, staying: set[TypeAndValue]) -> set[Mark]:
    """The marks of the requested values that do not conflict. Existing values take precedence, then those we own."""
    at, right = outcome.at, _right(outcome.at)
    ours = held(at.ours)
    foreign = (at.present & held(at.theirs)) | (set() if at.adopt else at.unmarked)
    standing = foreign | staying
    aliases = {value for value in standing if value[0] == "CNAME"}
    come: set[Mark] = set()
    asked = [((mark.type, mark.value), mark) for mark in at.wanted - right]
    for value, mark in sorted(asked, key=lambda each: (each[0] not in at.present, each[0] not in ours, each[1])):
        # a CNAME excludes all other values
        if clash := min((standing if mark.type == "CNAME" else aliases) - {value}, default=None):
            _report_clash(outcome, mark, clash, foreign, staying)
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


def _report_clash(
    outcome: Outcome, mark: Mark, clash: TypeAndValue, foreign: set[TypeAndValue], staying: set[TypeAndValue]
) -> None:
    clashing = f"{mark.type} {mark.value} cannot stand beside {' '.join(clash)}"
    owners = sorted({other.owner for other in outcome.at.theirs if (other.type, other.value) == clash})
    if clash in staying and clash not in foreign:
        outcome.leave("waits", f"{clashing}, which is ours and has to go first", mark.by)
    elif owners:
        outcome.leave("refused", f"{clashing}, which is put there by {', '.join(owners)}", mark.by)
    elif clash in foreign:
        outcome.leave("refused", f"{clashing}, which is there and not ours", mark.by)
    else:
        outcome.leave("refused", f"{clashing}, which is asked for as well", mark.by)


def _why_foreign(at: AtName, kind: str) -> str:
    """Why no new value of this type may be added: foreign values exist, and no owner has marked any of this type."""
    marked = {mark.type for mark in at.ours | at.theirs}
    if at.adopt or not at.unmarked or kind in marked:
        return ""
    record = at.records.get(kind) or (None if marked else next(iter(at.records.values())))
    return f"{record.type} {', '.join(record.values)} is there and not ours" if record else ""
