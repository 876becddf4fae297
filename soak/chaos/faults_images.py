"""Faults that replace the image of a disk: by an older copy of itself, or by a copy of another member's disk.

The original image is kept; if the member is refused, the person restores it. If the cluster healed by itself, it must
not be restored: by then the original image would be an older copy, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from soak.chaos.fault import Fault
from soak.chaos.field import Field, at_rest, copy_image, kept

MOUNTED, DETACHED = "mounted", "detached"
DRAFT = ".draft"


@contextmanager
def another_disk(field: Field, member: str) -> Iterator[Path]:
    """Yield the path for a new image; at the end, replace the member's disk by it."""
    image = Path(field.volume(member)["image"])
    draft = image.with_suffix(DRAFT)
    try:
        yield draft
        with field.powered_off(member):
            image.replace(kept(image))
            draft.replace(image)
    finally:
        draft.unlink(missing_ok=True)


class _AnotherDisk(Fault):
    """The person restores the original disk."""

    __slots__ = ()

    def mend(self, field: Field) -> None:
        field.put_back(self.member)


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderCopy(_AnotherDisk):
    """The disk of a member is replaced by a copy of itself that is some seconds old."""

    taken: str = MOUNTED
    age: float = 5.0
    """Seconds of writes that the copy lacks."""
    kind: ClassVar[str] = "older-copy"
    alone: ClassVar[bool] = True
    heals: ClassVar[float] = 150.0
    causes: ClassVar[tuple[str, ...]] = (r"older copy", r"older than", r"went back", r"lacks what")

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        return cls(
            member=chance.choice(list(members)),
            lasts=cls.lasting(chance),
            taken=chance.choice([MOUNTED, DETACHED]),
            age=round(chance.uniform(3, 15), 1),
        )

    def apply(self, field: Field) -> None:
        with another_disk(field, self.member) as draft:
            image = Path(field.volume(self.member)["image"])
            if self.taken == MOUNTED:
                with at_rest(field.until_mounted(self.member)):
                    copy_image(image, draft)
            else:
                with field.powered_off(self.member):
                    copy_image(image, draft)
            field.sleep(self.age)

    def describe(self) -> str:
        return f"{self.kind} {self.member}: {self.age:g} s old, taken while {self.taken}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone(_AnotherDisk):
    """The disk of a member is overwritten with a copy of another member's."""

    source: str = ""
    kind: ClassVar[str] = "clone"
    alone: ClassVar[bool] = True
    heals: ClassVar[float] = 150.0
    causes: ClassVar[tuple[str, ...]] = (r"the disk says", r"the identity on", r"copy of")

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        member, source = chance.sample(list(members), 2) if len(members) > 1 else (members[0], members[0])
        lasts = cls.lasting(chance)
        return cls(member=member, source=source, lasts=lasts)

    def apply(self, field: Field) -> None:
        with another_disk(field, self.member) as draft, at_rest(field.until_mounted(self.source)):
            copy_image(Path(field.volume(self.source)["image"]), draft)

    def describe(self) -> str:
        return f"{self.kind}: the disk of {self.member} becomes a copy of that of {self.source}"
