"""A PATH of one folder, for tests that look for programs."""

from __future__ import annotations

from builders.environment_fixtures import only_path

__all__ = ["only_path"]
