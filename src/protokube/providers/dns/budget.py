"""Rate limit of requests to a provider: Route 53 rejects the sixth request within a second of a whole account.

All zones of an account share one budget, so that our own calls wait here, in order, instead of causing throttling
errors for every user of the account.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from protokube.providers.dns import DnsProvider
from protokube.records import Change, Record

Kind = Literal["zones", "list", "read", "apply"]


class TokenBucket:
    """`rate` calls a second, and `burst` at once after a pause."""

    def __init__(self, rate: float, burst: int) -> None:
        self._between, self._ahead = 1 / rate, burst / rate
        self._full_at = float("-inf")
        """When the bucket will be full again."""

    def take(self, now: float) -> float:
        """Take one token; return how many seconds the call has to wait. Later callers wait longer."""
        self._full_at = max(self._full_at, now) + self._between
        return max(0.0, self._full_at - self._ahead - now)


class Budget:
    """Delays calls to the rate of a bucket, if there is one, and counts them by kind."""

    def __init__(
        self,
        bucket: TokenBucket | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bucket, self._clock, self._sleep = bucket, clock, sleep
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def calls(self) -> Mapping[str, int]:
        with self._lock:
            return dict(self._calls)

    def spend(self, kind: Kind) -> None:
        """Wait until one more call may be made."""
        with self._lock:
            self._calls[kind] += 1
            wait = self._bucket.take(self._clock()) if self._bucket else 0.0
        if wait > 0:
            self._sleep(wait)


class BudgetedDns:
    """Implements DnsProvider over another one whose every call is one request."""

    def __init__(self, inner: DnsProvider, budget: Budget) -> None:
        self._inner, self._budget = inner, budget

    @property
    def zone(self) -> str:
        return self._inner.zone

    def read(self, names: Collection[str]) -> Sequence[Record]:
        self._budget.spend("read")
        return self._inner.read(names)

    def list_records(self) -> Sequence[Record]:
        self._budget.spend("list")
        return self._inner.list_records()

    def apply(self, batch: Sequence[Change]) -> None:
        self._budget.spend("apply")
        self._inner.apply(batch)

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return self._inner.split(units)
