"""Progress reports of long-running work: steps that end with a line, and status texts that the next one replaces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class ProgressReporter(Protocol):
    """Receives progress reports; `cli.shared.progress.Progress` implements it."""

    def step(self, text: str) -> AbstractContextManager[object]:
        """A context for one piece of work."""

    def say(self, text: str) -> None:
        """Show what happens right now."""

    def note(self, text: str) -> None:
        """Print a line that stays."""


class Silent:
    """Discards all progress reports."""

    @contextmanager
    def step(self, text: str) -> Iterator[None]:  # noqa: ARG002
        yield

    def say(self, text: str) -> None:
        """Discard the text."""

    def note(self, text: str) -> None:
        """Discard the text."""
