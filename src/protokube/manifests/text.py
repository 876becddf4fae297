"""Trees as YAML."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any


def as_yaml(tree: dict[str, Any]) -> str:
    return _rendered(json.dumps(tree))


@lru_cache(maxsize=64)
def _rendered(tree: str) -> str:
    """Asked for in every round, if only to be compared: what was rendered before is kept."""
    import yaml  # not needed by a program that only reads the values

    in_c = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # says the same in a tenth of the time
    return str(yaml.dump(json.loads(tree), Dumper=in_c, sort_keys=False))
