"""Find blank replacement volumes that are not needed, because their member has its previous volume. Pure.

The agents neither claim nor format them; `status` lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from protokube.members.generation import is_untouched


@dataclass(frozen=True, slots=True)
class TaggedVolume:
    """A volume, with what the provider has recorded about it."""

    id: str
    member: tuple[str, str]
    """Etcd cluster and member."""
    epoch: int
    mark: str

    @property
    def is_blank(self) -> bool:
        return self.epoch == 0 and is_untouched(self.mark)


def spares(volumes: Iterable[TaggedVolume], superseded: Collection[str]) -> dict[str, str]:
    """The spare volumes by id, each with the volume that its member uses."""
    observed = [each for each in volumes if each.id not in superseded]
    used = {each.member: each.id for each in observed if not each.is_blank}
    return {each.id: used[each.member] for each in observed if each.is_blank and each.member in used}
