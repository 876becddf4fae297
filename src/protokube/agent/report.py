"""The report of a round: what it did, what it waits for and since when, what needs a person; as text and as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from protokube.errors import ProtokubeError
from protokube.notes import Note


@dataclass(slots=True)
class Report:
    """Filled by the steps of one round."""

    did: list[Note] = field(default_factory=list)
    waits: list[Note] = field(default_factory=list)
    person: list[Note] = field(default_factory=list)
    bugs: list[Note] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    """Early warnings for a person; nothing waits for them."""

    def done(self, step: str, text: str, about: str = "") -> None:
        if text:
            self.did.append(Note(step=step, about=about, text=text))

    def waiting(self, step: str, why: ProtokubeError | str, about: str = "", since: float | None = None) -> None:
        self.waits.append(replace(_note(step, why, about), since=since))

    def needs_a_person(self, step: str, why: ProtokubeError | str, about: str = "", hint: str = "") -> None:
        note = _note(step, why, about)
        self.person.append(replace(note, hint=hint) if hint else note)

    def warn(self, step: str, text: str, about: str = "", hint: str = "") -> None:
        self.warnings.append(Note(step=step, about=about, text=text, hint=hint))

    def broken(self, step: str, text: str) -> None:
        self.bugs.append(Note(step=step, about="", text=text))

    @property
    def settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return not (self.waits or self.person or self.bugs)

    def sentence(self, now: float | None = None) -> str:
        """The round in one line, with how long each wait has lasted by `now`; empty if there is nothing to report."""
        parts = [f"{_subject(each)} {each.text}" for each in self.did]
        parts += [f"{_subject(each)} waits: {each.text}{_lasted(each, now)}" for each in self.waits]
        parts += [f"{_subject(each)} NEEDS A PERSON: {each.text}" for each in self.person]
        parts += [f"{each.step} BROKEN: {each.text}" for each in self.bugs]
        parts += [f"{_subject(each)} WARNING: {each.text}" for each in self.warnings]
        return "; ".join(parts)

    def to_tree(self) -> dict[str, Any]:
        return {
            "did": _trees(self.did),
            "waiting": _trees(self.waits),
            "needsAPerson": _trees(self.person),
            "broken": _trees(self.bugs),
            "warnings": _trees(self.warnings),
        }


def _note(step: str, why: ProtokubeError | str, about: str) -> Note:
    if isinstance(why, ProtokubeError):
        return Note(step=step, about=about, text=why.message, hint=why.hint, saw=why.saw)
    return Note(step=step, about=about, text=why)


def _trees(notes: list[Note]) -> list[dict[str, Any]]:
    """Without the fields that are empty."""
    return [{name: value for name, value in asdict(note).items() if value not in ("", None)} for note in notes]


def _lasted(note: Note, now: float | None) -> str:
    seconds = 0.0 if note.since is None or now is None else now - note.since
    return f" (for {seconds:.0f} s)" if seconds >= 1 else ""


def _subject(note: Note) -> str:
    return f"{note.step} {note.about}:" if note.about else note.step
