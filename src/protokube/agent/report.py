"""What a round did, what it waits for and since when, and what needs a person: as one sentence and as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from protokube.errors import ProtokubeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing worth telling, about one part of the cluster."""

    step: str
    about: str
    """`main/a`, `vol-1`, `api.internal.dev`; "" for the step as a whole."""
    text: str
    hint: str = ""
    saw: str = ""


@dataclass(slots=True)
class Report:
    """Filled by the steps of one round."""

    did: list[Note] = field(default_factory=list)
    waits: list[Note] = field(default_factory=list)
    person: list[Note] = field(default_factory=list)
    bugs: list[Note] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    """What a person should know of, long before it does harm: nothing waits for it."""

    def done(self, step: str, text: str, about: str = "") -> None:
        if text:
            self.did.append(Note(step=step, about=about, text=text))

    def waiting(self, step: str, why: ProtokubeError | str, about: str = "") -> None:
        self.waits.append(_note(step, why, about))

    def needs_a_person(self, step: str, why: ProtokubeError | str, about: str = "", hint: str = "") -> None:
        note = _note(step, why, about)
        self.person.append(
            Note(step=step, about=about, text=note.text, hint=hint or note.hint, saw=note.saw) if hint else note
        )

    def warn(self, step: str, text: str, about: str = "", hint: str = "") -> None:
        self.warnings.append(Note(step=step, about=about, text=text, hint=hint))

    def broken(self, step: str, text: str) -> None:
        self.bugs.append(Note(step=step, about="", text=text))

    @property
    def settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return not (self.waits or self.person or self.bugs)

    def sentence(self) -> str:
        """The round in one line; empty if nothing happened and nothing is waited for."""
        parts = [f"{_subject(each)} {each.text}" for each in self.did]
        parts += [f"{_subject(each)} waits: {each.text}" for each in self.waits]
        parts += [f"{_subject(each)} NEEDS A PERSON: {each.text}" for each in self.person]
        parts += [f"{each.step} BROKEN: {each.text}" for each in self.bugs]
        parts += [f"{_subject(each)} WARNING: {each.text}" for each in self.warnings]
        return "; ".join(parts)

    def to_tree(self) -> dict[str, Any]:
        def told(notes: list[Note]) -> list[dict[str, str]]:
            fields = ("step", "about", "text", "saw", "hint")
            return [{name: getattr(note, name) for name in fields if getattr(note, name)} for note in notes]

        return {
            "did": told(self.did),
            "waiting": told(self.waits),
            "needsAPerson": told(self.person),
            "broken": told(self.bugs),
            "warnings": told(self.warnings),
        }


def _note(step: str, why: ProtokubeError | str, about: str) -> Note:
    if isinstance(why, ProtokubeError):
        return Note(step=step, about=about, text=why.message, hint=why.hint, saw=why.saw)
    return Note(step=step, about=about, text=why)


def _subject(note: Note) -> str:
    return f"{note.step} {note.about}:" if note.about else note.step
