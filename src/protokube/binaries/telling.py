"""How long work tells what it does: steps that end with a line, and words in between that the next replaces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Teller(Protocol):
    """Who is told. The command line's progress is one."""

    def step(self, text: str) -> AbstractContextManager[object]:
        """A piece of work, for as long as it takes."""

    def say(self, text: str) -> None:
        """What happens right now."""


class Silent:
    """Tells nobody."""

    @contextmanager
    def step(self, text: str) -> Iterator[None]:  # noqa: ARG002
        yield

    def say(self, text: str) -> None:
        """Nothing is said."""
