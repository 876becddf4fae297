"""The command, for tests of single commands."""

from __future__ import annotations

from builders.command_fixtures import call, here

__all__ = ["call", "here"]
