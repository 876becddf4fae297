"""Publish why an agent has had no round yet: it does not know which machine it runs on.

Without that it has no id, so its record has the name of the host. Once it knows, its own record follows, and this one
is marked so that a reader does not take it for another machine.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from protokube.agent.edges import Clock
from protokube.agent.publish import LEAST, digest_of, due, encode, kept_list, write, written
from protokube.agent.redact import redacted
from protokube.agent.report import Report
from protokube.errors import Refused, TryLater
from protokube.store import Store, layout

log = logging.getLogger("protokube.agent")
STEP = "machine"


class FirstBoot:
    """What an agent reports before its first round. Never raises: a store that fails must not keep the agent down."""

    def __init__(self, store: Store, cluster: str, host: str, clock: Clock, *, least: float = LEAST) -> None:
        self._store, self._cluster, self._host, self._clock, self._least = store, cluster, host, clock, least
        self._written: float | None = None
        self._digest, self._began = "", clock.now()

    def waiting(self, why: TryLater) -> None:
        report = Report()
        report.waiting(STEP, why, since=self._began)
        self._publish(report)

    def refused(self, why: Refused) -> None:
        report = Report()
        report.needs_a_person(STEP, why)
        self._written = None  # the agent ends now: there is no later time
        self._publish(report)

    def over(self, machine: str) -> None:
        """The agent knows its machine: its own record follows."""
        if machine == self._host:
            return
        with suppress(TryLater, Refused, ValueError, AttributeError):
            path = layout.agent(self._cluster, self._host)
            known = self._store.read(path)
            record = json.loads(known.data)
            if record.get("boot") is True and record.get("followedBy") != machine:
                self._store.replace(path, encode({**record, "followedBy": machine}), known.version)

    def _publish(self, report: Report) -> None:
        status = {"report": report.to_tree()}
        now, digest = self._clock.monotonic(), digest_of(status)
        if not due(now, self._written, self._digest, digest, least=self._least):
            return
        self._written, self._digest = now, digest
        try:
            write(self._store, self._cluster, self._host, encode(redacted(self._record(status, digest))))
        except (TryLater, Refused) as why:
            log.warning("cannot publish why this agent waits: %s", why.message)

    def _record(self, status: Mapping[str, Any], digest: str) -> dict[str, Any]:
        machine = {"id": self._host, "name": self._host, "address": "", "external": "", "zone": "", "group": ""}
        return {
            **status, **written(self._clock, self._clock.monotonic(), self._least), **self._list_of_before(),
            "machine": machine, "cluster": self._cluster, "revision": None, "round": 0, "at": self._clock.now(),
            "took": 0.0, "nextWithin": 10.0, "members": [], "jobs": [], "live": None, "leasesRead": None, "names": {},
            "zone": False, "watched": {}, "elected": False, "serving": None, "withoutQuorumSince": None, "etcd": {},
            "digest": digest, "boot": True,
        }  # fmt: skip

    def _list_of_before(self) -> dict[str, Any]:
        """Where host and machine have one name, this record replaces one that may have the only list of the volumes."""
        try:
            known = json.loads(self._store.read(layout.agent(self._cluster, self._host)).data)
            age = max(self._clock.now() - float(known["at"]), 0.0)
            listed = kept_list(known, -age)
        except (TryLater, Refused, ValueError, KeyError, TypeError, OverflowError):
            listed = None
        if listed is None:
            return {"volumes": None, "volumesAge": None}
        return {"volumes": listed.volumes, "volumesAge": round(-listed.at, 2)}
