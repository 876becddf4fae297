"""What of a spec cannot change on a running cluster, and why. Pure.

`rules` decides it for every field of the schema; `refuse` applies the rules to the differences of two configurations.
"""

from __future__ import annotations

from protokube.config.fixed.refuse import refusals

__all__ = ["refusals"]
