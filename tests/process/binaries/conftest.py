"""No variable of the environment reaches these tests."""

from __future__ import annotations

from builders.environment_fixtures import alone

__all__ = ["alone"]
