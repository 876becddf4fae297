"""DNS records as values: observed, desired, and the change between the two. Pure."""

from __future__ import annotations

from dataclasses import dataclass

Key = tuple[str, str]
"""Name and type; unique to one record."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Record:
    """All values of one type at one name."""

    name: str
    """Lower case, without the final dot."""
    type: str
    """A, AAAA, CNAME or TXT."""
    values: tuple[str, ...]
    """Sorted, without duplicates, never empty. A TXT value is the text without quotes; a CNAME has one, a name."""
    ttl: int

    @property
    def key(self) -> Key:
        return self.name, self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From the observed record to the desired one, at one name and type; None means no record."""

    before: Record | None
    after: Record | None
    why: str

    @property
    def key(self) -> Key:
        record = self.after or self.before
        assert record is not None
        return record.key

    def __str__(self) -> str:
        was = ", ".join(self.before.values) if self.before else "nothing"
        now = ", ".join(self.after.values) if self.after else "nothing"
        return f"{' '.join(self.key)}: {was} -> {now} ({self.why})"
