"""Read a TSIG key from a file: as `tsig-keygen` prints it for BIND, or as JSON, as our stores keep one."""

from __future__ import annotations

import json
import re
from pathlib import Path

from protokube.errors import InvalidRequest
from protokube.providers.dns.keys import TsigKey

KEY = re.compile(
    r'\s*key\s+"?(?P<name>[^"\s{]+)"?\s*\{(?=[^}]*algorithm\s+"?(?P<algorithm>[\w-]+))(?=[^}]*secret\s+"(?P<secret>[^"]+)")'
)
COMMENT = re.compile(r'(?P<kept>"[^"]*")|(?:#|//)[^\n]*|/\*.*?\*/', re.DOTALL)
"""Never inside quotes: the letters of a secret may hold `//`."""


def read_key(file: Path) -> TsigKey:
    """InvalidRequest if the file cannot be read or holds no key."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read {file}: {getattr(error, 'strerror', '') or 'it is no text'}") from error
    return key_in(text, str(file))


def key_in(text: str, place: str) -> TsigKey:
    """Parse the content of a key file; errors name its place."""
    found = _json_key(text) or KEY.match(COMMENT.sub(lambda part: part["kept"] or " ", text))
    if found is None:
        raise InvalidRequest(
            f"{place} holds no key", want='key "name" { algorithm hmac-sha256; secret "..."; };',
            hint="`tsig-keygen NAME` writes one",
        )  # fmt: skip
    if found["algorithm"].lower() != "hmac-sha256":
        raise InvalidRequest(f"{place}: the key is for {found['algorithm']}", want="hmac-sha256")
    return TsigKey(name=found["name"], secret=found["secret"])


def _json_key(text: str) -> dict[str, str] | None:
    """`{"name": ..., "secret": ...}`, perhaps with its algorithm; None if it is something else."""
    try:
        tree = json.loads(text)
    except ValueError:
        return None
    parts = {"algorithm": "hmac-sha256"} | (tree if isinstance(tree, dict) else {})
    return parts if all(isinstance(parts.get(part), str) for part in ("name", "secret", "algorithm")) else None
