"""Whose a value is: beside each name of ours lies a TXT record with a mark for each value that somebody put there.

Ownership is per value and not per name, so two clusters can contribute to one name, and either can leave. The record
lies at a name of its own below ours, since nothing may stand beside a CNAME. A mark also says which object asked for
the value: after a restart that is how one finds out whether it still does. `marklines` writes and reads them.
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
    """This owner put this value at the name, because that object asked for it; its text is a line for it alone."""

    owner: str
    type: str
    value: str
    by: str

    def __str__(self) -> str:
        return f"protokube/1 {self.owner} {self.type} {self.value} {self.by}"


@dataclass(frozen=True, slots=True, order=True)
class Owned:
    """A mark, and the name it stands at."""

    name: str
    mark: Mark


def mark_name(name: str) -> str:
    """Where the marks of a name lie. A star may stand only in front, so that of a wildcard has a label of its own."""
    return f"{STAR_LABEL}.{name.removeprefix('*.')}" if name.startswith("*.") else f"{LABEL}.{name}"


def marked_name(name: str) -> str | None:
    """The name whose marks lie here; None if none do."""
    label, _, rest = name.partition(".")
    if not rest or label not in (LABEL, STAR_LABEL):
        return None
    return f"*.{rest}" if label == STAR_LABEL else rest
