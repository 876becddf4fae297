"""Ownership of values: for each name, a TXT record holds a mark for each value that an owner wrote.

Ownership is per value and not per name, so two clusters can contribute to one name, and either can leave. The TXT
record has a name of its own below the name, since a CNAME excludes other records. A mark also names the object that
asked for the value, so that after a restart we can check whether it still does. `marklines` encodes and decodes marks.
"""

from __future__ import annotations

from dataclasses import dataclass

LABEL, STAR_LABEL = "_protokube", "_protokube-star"
TYPE = "(A|AAAA|CNAME)"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Want:
    """One value that an object asks for at a name."""

    name: str
    type: str
    """A, AAAA or CNAME."""
    value: str
    by: str
    """The object: `pod/kube-system/web-1`; with the node whose address it is: `service/default/web>node/n1`."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mark:
    """The owner wrote this value, because the object `by` asked for it; `str` is the line for a single mark."""

    owner: str
    type: str
    value: str
    by: str

    def __str__(self) -> str:
        return f"protokube/1 {self.owner} {self.type} {self.value} {self.by}"


@dataclass(frozen=True, slots=True, order=True)
class Owned:
    """A mark, and the name of its value."""

    name: str
    mark: Mark


def mark_name(name: str) -> str:
    """The name of the TXT record with the marks. A star must be the first label, so wildcards use another label."""
    return f"{STAR_LABEL}.{name.removeprefix('*.')}" if name.startswith("*.") else f"{LABEL}.{name}"


def marked_name(name: str) -> str | None:
    """The inverse of `mark_name`; None if this is not the name of a marks record."""
    label, _, rest = name.partition(".")
    if not rest or label not in (LABEL, STAR_LABEL):
        return None
    return f"*.{rest}" if label == STAR_LABEL else rest
