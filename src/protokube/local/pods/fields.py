"""Decode fields of a manifest one by one; an error names the path of the field, and nothing is guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_MISSING: Any = object()


class PodProblem(Exception):
    """A manifest that cannot be run; the message is for its author."""


class Fields:
    """A mapping in a manifest, and its path."""

    __slots__ = ("_values", "path")

    def __init__(self, values: Any, path: str) -> None:
        if not isinstance(values, dict):
            raise PodProblem(f"{path or 'the file'} is not a mapping")
        self._values: dict[str, Any] = values
        self.path = path

    def __contains__(self, name: str) -> bool:
        return self.value(name) is not None

    def keys(self) -> Iterable[str]:
        return self._values.keys()

    def value(self, name: str) -> Any:
        return self._values.get(name)

    def text(self, name: str, default: str = _MISSING) -> str:
        found = str(self._typed(name, str, "a text", default))
        if "\0" in found:
            raise PodProblem(f"{self._at(name)} holds a zero byte")
        return found

    def flag(self, name: str) -> bool:
        return bool(self._typed(name, bool, "true or false", False))

    def number(self, name: str, default: float = _MISSING, least: float = 0.0) -> float:
        found = self._typed(name, (int, float), "a number", default)
        if isinstance(found, bool) or not math.isfinite(found) or found < least:
            raise PodProblem(f"{self._at(name)} is {found!r}, not a number from {least:g} up")
        return float(found)

    def one_of(self, name: str, choices: Sequence[str], default: str) -> str:
        found = self.text(name, default)
        if found not in choices:
            raise PodProblem(f"{self._at(name)} is {found!r}, not one of {', '.join(filter(None, choices))}")
        return found

    def name(self, name: str, default: str = _MISSING) -> str:
        """A name that is safe as part of a path."""
        found = self.text(name, default)
        if not NAME.fullmatch(found):
            raise PodProblem(f"{self._at(name)} is {found!r}, not a name of a-z, 0-9, - and .")
        return found

    def absolute(self, name: str, default: str = _MISSING) -> str:
        found = self.text(name, default)
        if not found.startswith("/") or ".." in found.split("/"):
            raise PodProblem(f"{self._at(name)} is {found!r}, not an absolute path")
        return found

    def texts(self, name: str) -> Sequence[str]:
        found = self._typed(name, list, "a list", [])
        if not all(isinstance(each, str) and "\0" not in each for each in found):
            raise PodProblem(f"{self._at(name)} holds something that is not a text")
        return list(found)

    def section(self, name: str) -> Fields:
        return Fields(self._typed(name, dict, "a mapping", {}), self._at(name))

    def sections(self, name: str) -> Sequence[Fields]:
        found = self._typed(name, list, "a list", [])
        return [Fields(each, f"{self._at(name)}[{place}]") for place, each in enumerate(found)]

    def _typed(self, name: str, kind: type | tuple[type, ...], expected: str, default: Any) -> Any:
        found = self._values.get(name)
        if found is None:
            if default is _MISSING:
                raise PodProblem(f"{self._at(name)} is missing")
            return default
        if not isinstance(found, kind):
            raise PodProblem(f"{self._at(name)} is {found!r}, not {expected}")
        return found

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name
