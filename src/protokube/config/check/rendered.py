"""A complete configuration that is read again shows its flags and files; they must still be what the fields say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protokube.config.draft import Ledger
from protokube.spec.decode import Tree
from protokube.spec.parse import GROUPS


def unchanged(said: dict[str, Tree], rendered: dict[str, Tree], ledger: Ledger) -> None:
    """Flags and files are shown, not taken: one edited by hand would otherwise be lost without a word."""
    for key, told in said.items():
        path = f"{GROUPS}.{key}.rendered" if key else "rendered"
        for at, old, new in differences(path, told, rendered.get(key, {})):
            hint = "change the field it comes from, or its component's `extraFlags`; or delete `rendered`"
            ledger.problem(at, f"says {shown(old)}, but the fields give {shown(new)}", hint, path)


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
