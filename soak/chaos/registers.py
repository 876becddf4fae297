"""Registers in etcd: read, write, compare-and-swap through one member, and whether each took effect.

A failed compare-and-swap reads the value in the same transaction, because the checker needs it. Every read is
linearizable, which is etcd's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from protokube.etcd.client import GatewayEtcd
from protokube.etcd.deadline import Deadline
from protokube.etcd.faults import Fault
from protokube.etcd.messages import from_wire, to_wire
from protokube.etcd.tls import TlsFiles
from protokube.etcd.wire import NoAnswer
from soak.chaos.history import Value

SECONDS = 2.0
"""For one call."""


class Found(NamedTuple):
    """What a register holds, and the revision that wrote it."""

    value: Value
    revision: int = 0


class NotDone(Exception):
    """The call certainly had no effect."""


class NoReply(Exception):
    """The call may have taken effect, or may do so later."""


class Registers(GatewayEtcd):
    """One client of one member; for one thread."""

    def __init__(self, member: str, url: str, tls: TlsFiles) -> None:
        super().__init__({member: url}, tls, timeout=SECONDS)
        self.member = member

    def get(self, key: str) -> Found:
        return _first(self._call("/v3/kv/range", {"key": to_wire(key)}))

    def write(self, key: str, value: str) -> Found:
        return _written(self._call("/v3/kv/put", _put(key, value)), value)

    def swap(self, key: str, expected: Value, new: str) -> tuple[bool, Found]:
        """Compare-and-swap; returns whether it took effect, and the current value."""
        wanted = {
            "compare": [_is(key, expected)],
            "success": [{"request_put": _put(key, new)}],
            "failure": [{"request_range": {"key": to_wire(key)}}],
        }
        reply = self._call("/v3/kv/txn", wanted)
        if reply.get("succeeded"):
            return True, _written(reply, new)
        return False, _first(reply["responses"][0]["response_range"])

    def _call(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            return self._ask(self.member, path, body, by=Deadline.after(SECONDS))
        except NoAnswer as why:
            raise (NoReply if why.sent else NotDone)(str(why)) from why
        except TimeoutError as why:  # before anything was sent
            raise NotDone(str(why)) from why
        except Fault as fault:
            raise (NotDone if fault.untouched else NoReply)(fault.message) from fault


def _put(key: str, value: str) -> dict[str, str]:
    return {"key": to_wire(key), "value": to_wire(value)}


def _is(key: str, expected: Value) -> dict[str, str]:
    if expected is None:
        return {"key": to_wire(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
    return {"key": to_wire(key), "target": "VALUE", "result": "EQUAL", "value": to_wire(expected)}


def _written(reply: Mapping[str, Any], value: str) -> Found:
    return Found(value, int(reply["header"]["revision"]))


def _first(reply: Mapping[str, Any]) -> Found:
    pairs = reply.get("kvs", ())
    return Found(from_wire(pairs[0].get("value", "")), int(pairs[0]["mod_revision"])) if pairs else Found(None)
