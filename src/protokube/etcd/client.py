"""Client of etcd's JSON gateway, as 3.4 and 3.5 have it.

Any member can be frozen, partitioned or gone, so a call tries one member after the other, starting with the one that
answered last, and ends by its deadline. The hard part is a write without a reply: it may have been applied. It is never
retried silently: another member is asked only if nothing was sent, or if the request is idempotent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd import Alarm, Hash, KeyValue, Range, Status, messages
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target
from protokube.etcd.faults import Cause, Code, Fault, fault_in, unanswered
from protokube.etcd.hashkv import hash_at
from protokube.etcd.idle import IdleWires
from protokube.etcd.messages import to_wire
from protokube.etcd.tls import Contexts, TlsFiles, Trust
from protokube.etcd.wire import NoAnswer, Wire
from protokube.members.start_values import Listed

log = logging.getLogger("protokube.etcd")
T = TypeVar("T")
Ask = Callable[[str, Mapping[str, Any] | None], Any]
"""Post a JSON document to a path of one member; without one, get."""
REACHED = 0.5
"""Connect timeout in seconds, for a member on this machine."""
LEAST, MORE = 0.1, 3.0
"""An unlikely member gets this many seconds at least, or this many times what all others took."""
DEFRAGMENTING = 300.0
"""Timeout in seconds: 8 GiB, the largest quota etcd recommends, at 30 MB a second."""
COMPACTING = 60.0
"""Timeout in seconds of a physical compaction."""


class GatewayEtcd:
    """Implements MaintainedEtcd. Endpoints are named by their members; threads may share it."""

    def __init__(self, endpoints: Mapping[str, str], tls: TlsFiles | None = None, *, timeout: float = 2.0) -> None:
        self._targets = {name: Target.of(url) for name, url in endpoints.items()}
        self._trust = Trust(tls) if tls else None
        self._timeout = timeout
        self._order = list(self._targets)
        self._idle = IdleWires(self._targets)

    def members(self) -> Sequence[Listed]:
        def read(ask: Ask) -> Sequence[Listed]:
            # 3.4 answers from its own memory; a linearizable read of the same member before it makes the list reliable
            ask("/v3/kv/range", {"key": to_wire("\0"), "count_only": True})
            return messages.list_of_members(ask("/v3/cluster/member/list", {"linearizable": True}))

        return self._anywhere("cannot list the members", read)

    def listed_by(self, endpoint: str) -> Sequence[Listed]:
        return messages.list_of_members(self._at(endpoint, "/v3/cluster/member/list", {"linearizable": False}))

    def status(self, endpoint: str) -> Status:
        return messages.status(self._at(endpoint, "/v3/maintenance/status", {}))

    def cluster_version(self) -> str:
        return self._anywhere("cannot read its version", lambda ask: messages.cluster_version(ask("/version", None)))

    def reachable(self, endpoint: str) -> bool:
        self._target(endpoint)
        try:
            wire = self._wire(endpoint, Deadline.after(REACHED))
        except NoAnswer:
            return False
        self._idle.give(endpoint, wire)
        return True

    def survey(self, seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        found: dict[str, Status] = {}

        def ask(name: str) -> None:
            try:
                found[name] = messages.status(self._at(name, "/v3/maintenance/status", {}, timeout=seconds))
            except ProtokubeError:
                return
            except Exception as error:  # noqa: BLE001 (an unreadable reply counts as none)
                log.warning("%s: its status cannot be read: %s: %s", name, type(error).__name__, error)

        # Threads are abandoned at the deadline: a name lookup cannot be interrupted.
        asking = {name: threading.Thread(target=ask, args=(name,), daemon=True) for name in self._targets}
        for each in asking.values():
            each.start()
        began, deadline = time.monotonic(), Deadline.after(seconds)
        others = asking.keys() - {unlikely}
        deadline.join(asking[name] for name in others)
        if unlikely in asking:
            took = time.monotonic() - began
            left = min(seconds - took, max(LEAST, MORE * took)) if others <= found.keys() else seconds - took
            Deadline.after(left).join([asking[unlikely]])
        answers = dict(found)
        self._order = sorted(self._order, key=lambda name: name not in answers)  # next call: live members first
        return answers

    def hash(self, endpoint: str, revision: int) -> Hash:
        contexts = self._contexts()
        return hash_at(
            self._target(endpoint), contexts.grpc if contexts else None, revision, Deadline.after(self._timeout)
        )

    def add_learner(self, peer_url: str) -> Listed:
        wanted = {"peerURLs": [peer_url], "isLearner": True}
        reply = self._once(f"cannot add {peer_url}", "/v3/cluster/member/add", wanted)
        return messages.listed(reply["member"])

    def promote(self, member: int) -> None:
        """No effect on a voter."""
        wanted = {"ID": str(member)}
        self._unless(Cause.NOT_A_LEARNER, f"cannot promote {member:x}", "/v3/cluster/member/promote", wanted)

    def remove(self, member: int) -> None:
        self._unless(Code.NOT_FOUND, f"cannot remove {member:x}", "/v3/cluster/member/remove", {"ID": str(member)})

    def grant(self, ttl: int) -> int:
        reply = self._anywhere("cannot grant a lease", lambda ask: ask("/v3/lease/grant", {"TTL": str(ttl)}))
        return int(reply["ID"])

    def keep(self, lease: int) -> bool:
        reply = self._anywhere("cannot renew a lease", lambda ask: ask("/v3/lease/keepalive", {"ID": str(lease)}))
        return int(reply["result"].get("TTL", 0)) > 0

    def revoke(self, lease: int) -> None:
        self._unless(Code.NOT_FOUND, "cannot revoke a lease", "/v3/lease/revoke", {"ID": str(lease)})

    def read(self, prefix: str) -> Sequence[KeyValue]:
        return self.read_at(prefix).keys

    def read_at(self, prefix: str) -> Range:
        wanted = messages.prefix_range(prefix) | {"sort_order": "ASCEND", "sort_target": "KEY"}
        reply = self._anywhere(f"cannot read {prefix!r}", lambda ask: ask("/v3/kv/range", wanted))
        header = reply.get("header") or {}
        return Range(
            cluster_id=int(header.get("cluster_id", 0)), revision=int(header.get("revision", 0)),
            keys=tuple(messages.key_value(each) for each in reply.get("kvs", ())),
        )  # fmt: skip

    def put(self, key: str, value: str, lease: int = 0) -> int:
        reply = self._once(f"cannot write {key!r}", "/v3/kv/put", messages.put(key, value, lease))
        return int(reply["header"]["revision"])

    def create(self, key: str, value: str, lease: int = 0) -> bool:
        absent = {"key": to_wire(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        wanted = {"compare": [absent], "success": [{"request_put": messages.put(key, value, lease)}]}
        return bool(self._once(f"cannot create {key!r}", "/v3/kv/txn", wanted).get("succeeded"))

    def alarms(self) -> Sequence[Alarm]:
        def read(ask: Ask) -> Sequence[Alarm]:
            ask("/v3/kv/range", {"key": to_wire("\0"), "count_only": True})  # linearizable, unlike the alarms
            return messages.alarms(ask("/v3/maintenance/alarm", {"action": "GET"}))

        return self._anywhere("cannot list the alarms", read)

    def disarm(self, alarm: Alarm) -> None:
        wanted = {"action": "DEACTIVATE", "memberID": str(alarm.member), "alarm": alarm.name}
        self._anywhere(f"cannot clear {alarm.name}", lambda ask: ask("/v3/maintenance/alarm", wanted))

    def compact(self, revision: int, *, physical: bool = True) -> None:
        wanted = {"revision": str(revision), "physical": physical}
        doing = f"cannot compact up to revision {revision}"
        self._unless(Cause.COMPACTED, doing, "/v3/kv/compaction", wanted, timeout=max(COMPACTING, self._timeout))

    def defragment(self, endpoint: str) -> None:
        self._at(endpoint, "/v3/maintenance/defragment", {}, timeout=max(DEFRAGMENTING, self._timeout))

    def move_leader(self, endpoint: str, target: int) -> None:
        self._at(endpoint, "/v3/maintenance/transfer-leadership", {"targetID": str(target)})

    def page(self, endpoint: str, start: str, limit: int, *, values: bool = False) -> Sequence[KeyValue]:
        wanted = {
            "key": to_wire(start or "\0"), "range_end": to_wire("\0"), "limit": str(limit), "keys_only": not values,
            "serializable": True,
        }  # fmt: skip
        reply = self._at(endpoint, "/v3/kv/range", wanted)
        return tuple(messages.key_value(each) for each in reply.get("kvs", ()))

    def close(self) -> None:
        """Close the idle connections. A call after this, or one still under way, closes its own."""
        self._idle.close()

    def _anywhere(self, doing: str, work: Callable[[Ask], T], timeout: float | None = None) -> T:
        """Try one member after the other until one answers; for idempotent requests."""
        deadline, failures = Deadline.after(timeout or self._timeout), []
        order = self._order
        for tried, name in enumerate(order):
            try:
                share = deadline.share(len(order) - tried)
                return self._answered(name, work(partial(self._ask, name, by=share)))
            except (NoAnswer, TimeoutError) as why:
                failures.append(f"{name}: {why}")
            except Fault as fault:
                if not fault.elsewhere:
                    raise fault.explained(doing) from fault
                failures.append(f"{name}: {fault.message}")
        raise unanswered(doing, failures)

    def _once(self, doing: str, path: str, body: Mapping[str, Any]) -> Any:
        """Send a write to one member; to the next only if it certainly was not applied."""
        deadline, failures = Deadline.after(self._timeout), []
        order = self._order
        for tried, name in enumerate(order):
            try:
                share = deadline.share(len(order) - tried)
                return self._answered(name, self._ask(name, path, body, by=deadline, connect_by=share))
            except NoAnswer as why:
                self._last(name)
                failures.append(f"{name}: {why}")
                if why.sent:
                    raise TryLater(
                        f"{doing}: no answer, so it may have been done or not",
                        saw=failures[-1],
                        hint="read again before deciding",
                    ) from why
            except TimeoutError as why:
                failures.append(f"{name}: {why}")
            except Fault as fault:
                if not fault.untouched:
                    raise fault.explained(doing) from fault
                failures.append(f"{name}: {fault.message}")
        raise unanswered(doing, failures)

    def _unless(
        self, done: Cause | Code, doing: str, path: str, body: Mapping[str, Any], *, timeout: float | None = None
    ) -> None:
        """An idempotent request; `done` is the error with which etcd replies if nothing is left to do."""

        def work(ask: Ask) -> None:
            try:
                ask(path, body)
            except Fault as fault:
                if done not in (fault.cause, fault.code):
                    raise

        self._anywhere(doing, work, timeout)

    def _at(self, endpoint: str, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """Send a request to one member only."""
        deadline = Deadline.after(timeout or self._timeout)
        self._target(endpoint)
        try:
            return self._ask(endpoint, path, body, by=deadline)
        except NoAnswer as why:
            raise TryLater(f"{endpoint} did not answer", saw=str(why)) from why
        except Fault as fault:
            raise fault.explained(endpoint) from fault

    def _ask(
        self, name: str, path: str, body: Mapping[str, Any] | None, *, by: Deadline, connect_by: Deadline | None = None
    ) -> Any:
        """Raises NoAnswer, or Fault for an error reply."""
        wire = self._wire(name, connect_by or by)
        try:
            status, document = wire.exchange(path, body, by)
        except BaseException:
            wire.close()
            raise
        self._idle.give(name, wire)
        if fault := fault_in(status, document):
            raise fault
        return document

    def _wire(self, name: str, deadline: Deadline) -> Wire:
        """An idle connection that is still open and uses the current certificates, or a new one."""
        contexts = self._contexts()
        context = contexts.gateway if contexts else None
        return self._idle.take(name, context) or Wire(self._targets[name], context, deadline)

    def _contexts(self) -> Contexts | None:
        return self._trust.contexts() if self._trust else None

    def _target(self, endpoint: str) -> Target:
        try:
            return self._targets[endpoint]
        except KeyError as unknown:
            raise Refused(f"no member is called {endpoint!r}", want=f"one of {', '.join(self._targets)}") from unknown

    def _answered(self, name: str, result: T) -> T:
        """Try this member first next time."""
        if self._order[0] != name:
            self._order = [name, *(each for each in self._order if each != name)]
        return result

    def _last(self, name: str) -> None:
        """Try this member last next time."""
        self._order = [*(each for each in self._order if each != name), name]
