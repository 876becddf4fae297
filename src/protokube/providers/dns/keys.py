"""TSIG keys (RFC 8945, hmac-sha256): the shared secret that allows us to update a zone."""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass, field

from protokube.errors import Refused
from protokube.records.names import normalise


@dataclass(frozen=True, slots=True, kw_only=True)
class TsigKey:
    name: str
    secret: str = field(repr=False)
    """Base64, as `tsig-keygen` and `keymgr` print it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", normalise(self.name))
        try:
            empty = not base64.b64decode(self.secret, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Refused(f"the secret of the key {self.name} is not base64") from error
        if empty:
            raise Refused(f"the secret of the key {self.name} is empty")


def new_key(name: str) -> TsigKey:
    return TsigKey(name=name, secret=base64.b64encode(secrets.token_bytes(32)).decode())
