"""Lists in pages that are all of one moment, as a real API server's are: who lists while objects change misses none."""

from __future__ import annotations

from itertools import count
from typing import Any

Tree = dict[str, Any]


class Pages:
    """What is left of lists that were begun, by token. Under the lock of its server."""

    def __init__(self) -> None:
        self._rests: dict[str, tuple[str, list[Tree]]] = {}
        self._tokens = count(1)

    def first(self, version: str, items: list[Tree], size: int) -> Tree:
        """The body of the answer."""
        meta = {"resourceVersion": version}
        if items[size:]:
            meta["continue"] = str(next(self._tokens))
            self._rests[meta["continue"]] = version, items[size:]
        return {"metadata": meta, "items": items[:size]}

    def further(self, token: str, size: int) -> Tree | None:
        """None if that list is no longer known."""
        known = self._rests.get(token)
        return self.first(*known, size) if known else None

    def forget(self) -> None:
        self._rests.clear()
