"""Which blank replacements are not needed, since their member has its former volume. Pure.

For the agents, which neither claim nor format them, and for `status`, which names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from protokube.members.generation import is_untouched


@dataclass(frozen=True, slots=True)
class TaggedVolume:
    """As far as the provider says it."""

    id: str
    member: tuple[str, str]
    """Etcd cluster and member."""
    epoch: int
    mark: str

    @property
    def is_blank(self) -> bool:
        return self.epoch == 0 and is_untouched(self.mark)


def spares(volumes: Iterable[TaggedVolume], superseded: Collection[str]) -> dict[str, str]:
    """By id: the volume that its member has instead."""
    observed = [each for each in volumes if each.id not in superseded]
    used = {each.member: each.id for each in observed if not each.is_blank}
    return {each.id: used[each.member] for each in observed if each.is_blank and each.member in used}
