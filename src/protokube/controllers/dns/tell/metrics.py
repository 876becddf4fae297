"""Prometheus metrics of the dns-controller: values, pending and rejected changes, provider calls, lag."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from protokube.controllers.dns.controller import Round
from protokube.host import metrics

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily

Calls = Callable[[], Mapping[str, int]]
"""The number of calls to the provider, by kind."""
Seconds = Callable[[], float | None]
BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Called with each round; `serve` exposes the metrics until `close`."""

    def __init__(
        self, calls: Calls | None = None, lag: Seconds = lambda: None, leading: Callable[[], bool] = lambda: False
    ) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = registry = CollectorRegistry()

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"protokube_dns_{name}", text, labels, registry=registry)

        self._rounds = Counter("protokube_dns_rounds", "Rounds of the dns-controller", registry=registry)
        self._written = Counter("protokube_dns_names_written", "Names that were changed", ["zone"], registry=registry)
        self._owned = gauge("values", "Values of ours before the last round", "zone")
        self._refused = gauge("refused", "Names that the provider turned away", "zone")
        self._left = gauge("left", "Names that are left as they are, by kind", "zone", "kind")
        self._kept = gauge("kept", "Unrequested values that stay because their removal was not confirmed", "zone")
        self._trouble = gauge("trouble", "1 while a zone cannot be read or written", "zone")
        self._problems = gauge("problems", "Things that objects ask for and do not get")
        # evaluated per scrape: a replica that cannot list its zones still leads, and one that hangs no longer does
        gauge("leading", "1 on the replica that writes").set_function(leading)
        self._whole = gauge("in_touch", "1 while every kind of object is listed and watched")
        self._success = gauge("last_success_seconds", "When this replica last reconciled all zones without trouble")
        text = "Seconds from a change of an object to its records being written"
        self._lag = Histogram("protokube_dns_lag_seconds", text, buckets=BUCKETS, registry=registry)
        self._seconds = lag
        if calls is not None:
            registry.register(_Counted(calls))
        self._close: Callable[[], None] = lambda: None

    def __call__(self, done: Round) -> None:
        self._rounds.inc()
        self._whole.set(done.seen is not None and done.seen.whole)
        self._problems.set(len(done.problems))
        for by_zone in (self._left, self._owned, self._refused, self._kept, self._trouble):
            by_zone.clear()  # drop the series of zones that we no longer manage
        for outcome in done.zones:
            zone = str(outcome.zone)
            self._written.labels(zone).inc(len(outcome.applied))
            self._owned.labels(zone).set(outcome.owned)
            self._refused.labels(zone).set(len(outcome.refused))
            self._kept.labels(zone).set(len(outcome.doubts))
            self._trouble.labels(zone).set(bool(outcome.trouble))
            for each in outcome.left:
                self._left.labels(zone, each.kind).inc()
        if any(outcome.applied for outcome in done.zones) and (seconds := self._seconds()) is not None:
            self._lag.observe(seconds)
        if done.zones and not any(outcome.trouble for outcome in done.zones):
            self._success.set(time.time())

    def serve(self, address: str) -> None:
        """At HOST:PORT."""
        self._close = metrics.serve(self._registry, address)

    def close(self) -> None:
        self._close()


class _Counted:
    """Reads the provider's own counters at each scrape."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def collect(self) -> Iterator[CounterMetricFamily]:
        from prometheus_client.core import CounterMetricFamily

        text = "Calls to the DNS provider, by kind"
        family = CounterMetricFamily("protokube_dns_provider_calls", text, labels=["kind"])
        for kind, count in sorted(self._calls().items()):
            family.add_metric([kind], count)
        yield family
