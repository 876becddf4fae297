"""Problems and warnings about fields of a complete configuration, with the lines that the user wrote."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from protokube.config.draft import Ledger
from protokube.errors import Problem
from protokube.nearest import near


class Notes:
    """Collects them: all are reported at once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def problem(self, path: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(path=path, message=message, hint=hint, where=self._ledger.where(path)))

    def warn(self, path: str, message: str, hint: str = "") -> None:
        self.warnings.append(Problem(path=path, message=message, hint=hint, where=self._ledger.where(path)))

    def only(self, tree: Mapping[str, Any], known: Collection[str], path: str) -> None:
        """Each other field of a part that the schema leaves open is a problem."""
        for name in tree:
            if name not in known:
                hint = near(name, known) or f"known are {', '.join(known)}"
                self.problem(f"{path}.{name}", "protokube does not carry this out", hint)
