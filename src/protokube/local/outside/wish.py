"""What `up` says about the way outside, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.errors import ProtokubeError
from protokube.local.outside.routes import Inside, read_ranges

SETTING = "outside"
"""Its name among the settings of a cloud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What `up` last asked for, as it is kept."""

    isolated: bool | None = None
    """None: nobody ever said."""
    why: str = ""
    """Why there is no way outside though it is wanted."""
    program: str = ""
    libraries: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    """Names below these are the cluster's own."""

    @staticmethod
    def read(told: dict[str, Any]) -> Wish:
        lists = {name: tuple(value) for name, value in told.items() if isinstance(value, list)}
        return Wish(**{**told, **lists})

    @property
    def open(self) -> bool:
        return self.isolated is False and not self.why

    @property
    def why_closed(self) -> str:
        """Why there is none, if it is not even tried."""
        if self.isolated is None:
            return "it was made before there was a way outside; `protokube up` decides"
        return "it was asked for: --isolated" if self.isolated else self.why

    @property
    def inside(self) -> Inside:
        return Inside(pods=read_ranges(self.pods), services=read_ranges(self.services))


def in_one_line(why: ProtokubeError) -> str:
    """An error as a reason, for `status`."""
    return why.message + (f" ({why.saw})" if why.saw else "") + (f"; {why.hint}" if why.hint else "")
