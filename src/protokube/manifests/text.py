"""Trees as YAML."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any


def as_yaml(tree: dict[str, Any]) -> str:
    return _rendered(json.dumps(tree))


@lru_cache(maxsize=64)
def _rendered(tree: str) -> str:
    """Cached: every round renders the manifests, if only to compare them."""
    import yaml  # not needed by programs that import only the values

    in_c = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # same output in a tenth of the time
    return str(yaml.dump(json.loads(tree), Dumper=in_c, sort_keys=False))
