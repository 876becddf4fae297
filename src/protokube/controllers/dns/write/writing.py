"""Write what is due, batch by batch: a name that is turned away stops no other one.

The hard thing is a refusal that does not say what it is about. A server whose policy is by names refuses a whole update
for one of them, in the same words as one that lets us write nothing at all. So a batch is halved here too; but only
where the provider has taken something of ours is a name put aside for it, and after many refusals in a row, or where
there is nothing else, it is the zone that is in trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from protokube.errors import TryLater
from protokube.providers.dns import BadRecord, NotAllowed
from protokube.records import Change
from protokube.records.batches import Unit, bisect, units_in

GIVE_UP = 32
"""So many refusals in a row, and no more are asked for: to find one name among 5,000 takes less than half of them."""

Split = Callable[[Iterable[Iterable[Change]]], Sequence[Sequence[Change]]]
Turned = list[tuple[Unit, str]]
"""Units that were turned away, each with the reason."""


class Closed(TryLater):
    """The zone lets us write nothing, as far as we can see."""

    def __init__(self, why: NotAllowed, refused: Sequence[tuple[Unit, str]] = ()) -> None:
        super().__init__(why.message, saw=why.saw, hint=why.hint)
        self.refused = refused
        """What it is about all the same: the provider took other things before."""


class Writing:
    """One zone's. What is remembered may be forgotten without harm."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._open, self._closed = False, False
        """Whether something of ours was taken, and whether only refusals came since."""

    def carry_out(self, units: Sequence[Unit], split: Split, write: Callable[[Sequence[Unit]], None]) -> Turned:
        """What was turned away. Raises Closed, and whatever else `write` raises."""
        if self._closed:  # many that may not be written must not for ever come before one that may
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
