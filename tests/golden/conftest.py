"""Tests of this tier stay inside their process."""

from __future__ import annotations

from confined import confined

__all__ = ["confined"]
