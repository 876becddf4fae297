"""The user's own files (`fileAssets`) on machines: path, content, mode, and the roles they are for."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

ASSETS = "/srv/kubernetes/assets"
"""Where the original puts a file without a path."""
USUAL_MODE = "0440"
MODE = re.compile(r"0?[4-7][0-7]{2}")
"""The owner may read it; no setuid, setgid or sticky bit."""
PADDING = re.compile(r"={1,2}\Z")


def place(name: str, asset: Mapping[str, Any]) -> str:
    return str(asset.get("path") or f"{ASSETS}/{name}")


def content(asset: Mapping[str, Any]) -> bytes:
    """Raises ValueError if `isBase64` is set and the content is not base64.

    The original accepts base64 only without padding, most tools write it with padding: both are accepted.
    """
    text = str(asset["content"])
    if not asset.get("isBase64"):
        return text.encode()
    bare = PADDING.sub("", "".join(text.split()))
    return b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def mode(asset: Mapping[str, Any]) -> int:
    """Raises ValueError for an invalid file mode."""
    text = str(asset.get("mode") or USUAL_MODE)
    if not MODE.fullmatch(text):
        raise ValueError(f"{text!r} is not a file mode")
    return int(text, 8)


def is_for(asset: Mapping[str, Any], role: str) -> bool:
    """An empty list of roles means all roles, as in the original."""
    return not asset.get("roles") or role in asset["roles"]
