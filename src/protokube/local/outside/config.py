"""The stored configuration of outbound network access, set by `up`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.errors import ProtokubeError
from protokube.local.outside.routes import Inside, read_ranges

SETTING = "outside"
"""Its name among the settings of a cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideConfig:
    """What `up` last configured, as stored in the database."""

    isolated: bool | None = None
    """None: never configured."""
    why: str = ""
    """Why there is no outbound access although it is wanted."""
    program: str = ""
    libraries: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    """Domains of the cluster; names below them are never forwarded."""

    @staticmethod
    def read(document: dict[str, Any]) -> OutsideConfig:
        lists = {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
        return OutsideConfig(**{**document, **lists})

    @property
    def open(self) -> bool:
        return self.isolated is False and not self.why

    @property
    def why_closed(self) -> str:
        """Why outbound access is not even attempted; empty if it is."""
        if self.isolated is None:
            return "it was made before there was a way outside; `protokube up` decides"
        return "it was asked for: --isolated" if self.isolated else self.why

    @property
    def inside(self) -> Inside:
        return Inside(pods=read_ranges(self.pods), services=read_ranges(self.services))


def in_one_line(why: ProtokubeError) -> str:
    """An error as a reason, for `status`."""
    return why.in_one_line() + (f"; {why.hint}" if why.hint else "")
