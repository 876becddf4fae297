"""Write what is due, batch by batch: a name that the provider rejects does not block the others.

The hard part is a rejection that does not name its cause. A server with a policy per name rejects a whole update for
one of them, with the same error as a server that lets us write nothing at all. So a batch is bisected in both cases.
But a single name is quarantined only if the provider has accepted another write of ours. After many rejections in a
row, or without any accepted write, the zone as a whole is reported as unwritable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from protokube.errors import TryLater
from protokube.providers.dns import BadRecord, NotAllowed
from protokube.records import Change
from protokube.records.batches import Unit, bisect, units_in

GIVE_UP = 32
"""Rejections in a row after which we stop: to find one bad name among 5,000 by bisection takes less than half of it."""

Split = Callable[[Iterable[Iterable[Change]]], Sequence[Sequence[Change]]]
Turned = list[tuple[Unit, str]]
"""Units that were rejected, each with the reason."""


class Closed(TryLater):
    """The zone seems to reject every write of ours."""

    def __init__(self, why: NotAllowed, refused: Sequence[tuple[Unit, str]] = ()) -> None:
        super().__init__(why.message, saw=why.saw, hint=why.hint)
        self.refused = refused
        """Units to blame nevertheless: the provider had accepted other writes before."""


class Writing:
    """Writes to one zone. Its state is safe to lose."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._open, self._closed = False, False
        """Whether the provider has accepted a write, and whether only rejections followed since."""

    def carry_out(self, units: Sequence[Unit], split: Split, write: Callable[[Sequence[Unit]], None]) -> Turned:
        """Return the rejected units. Raises Closed, and whatever else `write` raises."""
        if self._closed:  # start at a random unit: many forbidden ones must not always come before an allowed one
            first = int(self._jitter() * len(units)) % max(1, len(units))
            units = (*units[first:], *units[:first])
        refused: Turned = []
        in_a_row: list[NotAllowed] = []

        def attempt(part: Sequence[Unit]) -> None:
            try:
                write(part)
            except (BadRecord, NotAllowed) as why:
                if len(part) == 1:
                    refused.append((part[0], str(why)))
                if isinstance(why, NotAllowed):
                    in_a_row.append(why)
                if len(in_a_row) >= GIVE_UP:
                    raise self._close(in_a_row[-1], refused) from why
                raise
            self._open, self._closed = True, False
            in_a_row.clear()

        for batch in split([unit.changes for unit in units]):
            bisect(units_in(batch, units), attempt, (BadRecord, NotAllowed))
        if in_a_row and not self._open:
            raise self._close(in_a_row[-1], refused)
        return refused

    def _close(self, why: NotAllowed, refused: Turned) -> Closed:
        was_open, self._open, self._closed = self._open, False, True
        return Closed(why, tuple(refused) if was_open else ())
