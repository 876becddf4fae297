"""Trees as YAML."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from protokube import fast_yaml


def as_yaml(tree: dict[str, Any]) -> str:
    return _rendered(json.dumps(tree))


@lru_cache(maxsize=64)
def _rendered(tree: str) -> str:
    """Cached: every round renders the manifests, if only to compare them."""
    return fast_yaml.dump(json.loads(tree))
