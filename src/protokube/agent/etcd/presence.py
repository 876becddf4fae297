"""Liveness of masters and leader election, both over leases in etcd.

A lease lasts a few seconds and must be renewed more often than rounds run, so a background thread calls `beat`. Only
fresh answers are used: the age of an answer counts from the moment the request was sent.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from protokube.agent.edges import Clock, LeasesRead, MasterAddresses, MasterRevision
from protokube.agent.etcd.maintenance_lease import MaintenanceLease
from protokube.errors import Refused, TryLater
from protokube.etcd import Etcd, NoSpace
from protokube.providers.machines import Machine

PREFIX = "/protokube/"
MASTERS, ELECTED, MAINTENANCE = f"{PREFIX}masters/", f"{PREFIX}elected", f"{PREFIX}leave"
ROLLOUT = f"{PREFIX}rollout"
"""An operator writes here that the rollout record has changed: agents read it at once instead of within a minute."""
TTL = 5
"""Seconds for which a master counts as alive after its last renewal."""
EVERY, SOON = 1.25, 0.4
"""Seconds between two beats; while a live master does not serve the API yet, for QUICK seconds after it joined."""
QUICK = 60.0
HANGS = 60.0
"""Seconds after which a hanging beat is reported: it makes eight calls at most, of 2 s each."""


@dataclass(frozen=True, slots=True)
class _Seen:
    when: float
    addresses: Mapping[str, MasterAddresses]
    elected: str
    serving: frozenset[str]
    revisions: tuple[MasterRevision, ...]
    rollout: str
    read: LeasesRead


class LeasePresence:
    """Presence over leases; one lease carries both this master's liveness and its leadership."""

    def __init__(
        self,
        etcd: Etcd,
        me: Machine,
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
        is_serving: Callable[[], bool] | None = None,
        revision: int = 0,
    ) -> None:
        """`is_serving`: whether this master's API server is ready; None if masters run none."""
        self._etcd, self._me, self._clock, self._changed = etcd, me, clock, changed
        self._is_serving, self._revision = is_serving, revision
        self._masters_since = clock.monotonic()
        self._lease: int | None = None
        self._seen: _Seen | None = None
        self._stop = threading.Event()
        self._maintenance = MaintenanceLease(etcd, MAINTENANCE, me.id, clock)

    def beat(self) -> None:
        """Renew the lease, or acquire one, and read the other masters' keys. The next beat retries if etcd is down."""
        with contextlib.suppress(TryLater, Refused):
            self._beat()

    def _beat(self) -> None:
        if self._stop.is_set():
            return
        sent = self._clock.monotonic()
        if self._lease is not None and not self._etcd.keep(self._lease):
            self._lease = None
        if self._lease is None:
            self._lease = self._etcd.grant(TTL)
        found = self._etcd.read_at(PREFIX)
        keys = {each.key: each for each in found.keys}
        mine = f"{MASTERS}{self._me.id}"
        serving = self._is_serving is not None and self._is_serving()
        own = {
            "address": self._me.address,
            "external": self._me.external,
            "name": self._me.name,
            "serving": serving,
            "revision": self._revision,
        }
        record = json.dumps(own, sort_keys=True)
        if mine not in keys or keys[mine].lease != self._lease or keys[mine].value != record:
            with contextlib.suppress(NoSpace):  # a full etcd still renews leases; our old record stays
                self._etcd.put(mine, record, self._lease)
        elected = keys[ELECTED].value if ELECTED in keys else ""
        if not elected:
            elected = self._campaign()
        elif elected == self._me.id and keys[ELECTED].lease != self._lease:
            elected = ""  # leadership under a lease that we lost: it expires by itself
        masters = {
            key.removeprefix(MASTERS): _decode(each.value) for key, each in keys.items() if key.startswith(MASTERS)
        }
        masters[self._me.id] = json.loads(record)
        addresses = {machine: _addresses(each) for machine, each in masters.items()}
        apis = frozenset(machine for machine, each in masters.items() if each.get("serving") is True)
        hint = keys[ROLLOUT].value if ROLLOUT in keys else ""
        read = LeasesRead(cluster_id=found.cluster_id, revision=found.revision)
        before, self._seen = self._seen, _Seen(sent, addresses, elected, apis, _revisions(masters), hint, read)
        if before is None or before.addresses.keys() != addresses.keys():
            self._masters_since = sent
        granted = self._maintenance.beat(MAINTENANCE in keys, serving)
        if granted or before is None or replace(before, when=sent, read=read) != self._seen:
            self._changed()

    def _campaign(self) -> str:
        """Try to become the leader while there is none; a full etcd elects none."""
        assert self._lease is not None
        try:
            return self._me.id if self._etcd.create(ELECTED, self._me.id, self._lease) else ""
        except NoSpace:
            return ""

    def _fresh(self) -> _Seen | None:
        seen = self._seen
        return seen if seen is not None and self._clock.monotonic() - seen.when < TTL - 1 else None

    def live(self) -> Mapping[str, str] | None:
        addresses = self.addresses()
        return None if addresses is None else {machine: each.internal for machine, each in addresses.items()}

    def read_at(self) -> LeasesRead | None:
        seen = self._fresh()
        return seen.read if seen else None

    def addresses(self) -> Mapping[str, MasterAddresses] | None:
        seen = self._fresh()
        return seen.addresses if seen else None

    def serving(self) -> Collection[str] | None:
        seen = self._fresh()
        return seen.serving if seen else None

    def elected(self) -> bool:
        seen = self._fresh()
        return seen is not None and seen.elected == self._me.id

    def revisions(self) -> Sequence[MasterRevision] | None:
        seen = self._fresh()
        return seen.revisions if seen else None

    def rollout_hint(self) -> str | None:
        seen = self._fresh()
        return seen.rollout if seen else None

    def may_restart_api_server(self) -> bool:
        return self._maintenance.may_restart()

    def work(self) -> float:
        """One beat; returns the seconds until the next. Run by a thread of its own. It raises only on a malformed
        answer or a bug: the next beat starts over, and until one succeeds the last observation goes stale."""
        self.beat()
        return SOON if self._is_news_expected() else EVERY

    def _is_news_expected(self) -> bool:
        """Whether an API server is about to become ready, whose address the elected master then publishes."""
        seen = self._seen
        if self._is_serving is None or self._clock.monotonic() - self._masters_since >= QUICK:
            return False
        return seen is None or seen.serving != seen.addresses.keys()

    def retire(self) -> None:
        """Give up the lease for good, so that the others need not wait for it to expire."""
        self._stop.set()
        self._seen = None
        self._maintenance.release()
        if self._lease is not None:
            with contextlib.suppress(TryLater, Refused):
                self._etcd.revoke(self._lease)


def _addresses(record: Mapping[str, object]) -> MasterAddresses:
    """Agents of before `external` write no such field."""
    internal = str(record.get("address", ""))
    return MasterAddresses(internal=internal, external=str(record.get("external") or internal))


def _revisions(masters: Mapping[str, Mapping[str, object]]) -> tuple[MasterRevision, ...]:
    found = (
        MasterRevision(name=str(each.get("name") or machine), revision=number if isinstance(number, int) else 0)
        for machine, each in masters.items()
        for number in [each.get("revision")]
    )
    return tuple(sorted(found, key=lambda each: each.name))


def _decode(value: str) -> dict[str, object]:
    try:
        document = json.loads(value)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
