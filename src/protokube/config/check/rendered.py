"""A complete configuration that is read again has rendered flags and files; they must still match the fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protokube.config.draft import Ledger
from protokube.spec.decode import Tree
from protokube.spec.parse import GROUPS


def unchanged(given: dict[str, Tree], rendered: dict[str, Tree], ledger: Ledger) -> None:
    """Rendered flags and files are output only: an edit by hand would otherwise be lost silently."""
    for key, old_tree in given.items():
        path = f"{GROUPS}.{key}.rendered" if key else "rendered"
        for at, old, new in differences(path, old_tree, rendered.get(key, {})):
            hint = "change the field it comes from, or its component's `extraFlags`; or delete `rendered`"
            ledger.problem(at, f"is {shown(old)}, but the fields give {shown(new)}", hint, path)


MISSING = object()


def shown(value: Any) -> str:
    return "nothing" if value is MISSING else repr(value)


def differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """The paths at which two trees differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from differences(f"{path}.{name}", old.get(name, MISSING), new.get(name, MISSING))
    elif old != new:
        yield path, old, new
