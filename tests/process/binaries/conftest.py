"""No variable of the environment reaches these tests; a PATH of one folder, for those that look for programs."""

from __future__ import annotations

from builders.environment_fixtures import alone, only_path

__all__ = ["alone", "only_path"]
