"""Route 53 on loopback: moto over real HTTP, made as strict as Amazon documents the original.

moto takes a CREATE of what exists, a DELETE of what was there once, a CNAME beside an address, and does half of a batch
before it refuses the rest. So its backend is replaced by one that checks a whole batch and then keeps it. What can be
switched on top: five requests a second, answers that never come, and refusals of any kind.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from typing import Any, Self

from moto.core.exceptions import ServiceException
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.route53.models import FakeZone, RecordSet, Route53Backend, route53_backends
from werkzeug.serving import WSGIRequestHandler, make_server

from protokube.providers.dns.budget import Budget
from protokube.providers.dns.route53 import Route53Zones
from protokube.records.zones import Zone

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIATESTING",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}
ACCOUNT = "123456789012"
MOST_VALUES, MOST_CHARACTERS, MOST_VALUES_OF_ONE, LONGEST_VALUE, PAGE = 1000, 32_000, 400, 4000, 300
PER_SECOND = 5
Told = dict[str, Any]


class InvalidBatch(ServiceException):
    def __init__(self, message: str) -> None:
        super().__init__("InvalidChangeBatch", f"[{message}]")


class StrictBackend(Route53Backend):
    """Zones whose batches are atomic, and whose records have to be told exactly to be deleted."""

    __module__ = Route53Backend.__module__  # by which moto finds the paths to serve

    def change_resource_record_sets(self, zoneid: str, change_list: list[Told]) -> None:
        zone = self.get_hosted_zone(zoneid)
        _check_limits(change_list)
        kept: dict[str, list[RecordSet]] = {}
        for each in zone.rrsets:
            kept.setdefault(each.name, []).append(each)
        for change in change_list:
            told = {**change["ResourceRecordSet"], "Name": _stored_name(change["ResourceRecordSet"]["Name"])}
            told["ResourceRecords"] = [each["Value"] for each in told.get("ResourceRecords") or ()]
            _check_values(zone, told)
            made, there = _made(told), kept.setdefault(told["Name"], [])
            same = [each for each in there if _identity(each) == _identity(made)]
            if change["Action"] == "DELETE":
                if not same or not _matches(same[0], told):
                    raise InvalidBatch(
                        f"Tried to delete resource record set [name='{told['Name']}', type='{told['Type']}'] but "
                        + ("the values provided do not match the current values" if same else "it was not found")
                    )
                there.remove(same[0])
            elif change["Action"] == "CREATE" and same:
                raise InvalidBatch(
                    f"Tried to create resource record set [name='{told['Name']}', type='{told['Type']}'] "
                    "but it already exists"
                )
            else:
                there[:] = [each for each in there if each not in same]
                _check_beside(there, told)
                there.append(made)
        zone.rrsets = [each for there in kept.values() for each in there]

    def list_resource_record_sets(
        self, zone_id: str, start_type: str, start_name: str, max_items: int
    ) -> tuple[list[RecordSet], str | None, str | None, bool]:
        zone = self.get_hosted_zone(zone_id)
        start = (_order(_stored_name(start_name)), start_type or "") if start_name else ("", "")
        left = [each for each in sorted(zone.rrsets, key=_place) if _place(each) >= start]
        page = left[: min(int(max_items), PAGE)]
        if len(page) == len(left):
            return page, None, None, False
        following = left[len(page)]
        return page, following.name, following.type, True


def _made(told: Told) -> RecordSet:
    return RecordSet(told)  # type: ignore[abstract]


def _check_limits(changes: list[Told]) -> None:
    values = characters = 0
    for change in changes:
        told = [each["Value"] for each in change["ResourceRecordSet"].get("ResourceRecords") or ()]
        times = 2 if change["Action"] == "UPSERT" else 1
        values += times * len(told)
        characters += times * sum(map(len, told))
        if len(told) > MOST_VALUES_OF_ONE:
            raise InvalidBatch(f"{len(told)} values in one record")
    if values > MOST_VALUES:
        raise InvalidBatch(f"Number of records limit of {MOST_VALUES} exceeded.")
    if characters > MOST_CHARACTERS:
        raise InvalidBatch(f"Number of characters limit of {MOST_CHARACTERS} exceeded.")


def _check_values(zone: FakeZone, told: Told) -> None:
    name, kind, values = told["Name"], told["Type"], told["ResourceRecords"]
    if name != zone.name and not name.endswith("." + zone.name):
        raise InvalidBatch(f"RRSet with DNS name {name} is not permitted in zone {zone.name}")
    patterns = {"A": r"[0-9]+(\.[0-9]+){3}", "AAAA": r"[0-9a-fA-F:]+", "TXT": r'"([^"\\\\]|\\.)*"( "([^"\\\\]|\\.)*")*'}
    for value in values:
        if len(value) > LONGEST_VALUE or not value.isascii() or not re.fullmatch(patterns.get(kind, ".+"), value):
            raise InvalidBatch(f"Invalid Resource Record: '{value[:60]}' is not a value of {kind}")
        if any(len(part) > 255 for part in re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r"\\([0-7]{3}|.)", "x", value))):
            raise InvalidBatch("Invalid Resource Record: CharacterStringTooLong")
    if len(set(values)) != len(values):
        raise InvalidBatch("Duplicate Resource Record")
    if kind == "CNAME" and (len(values) > 1 or name == zone.name):
        raise InvalidBatch(f"RRSet of type CNAME with DNS name {name} is not permitted")


def _check_beside(kept: list[RecordSet], told: Told) -> None:
    for each in kept:
        if each.name == told["Name"] and ("CNAME" in (each.type, told["Type"])) and each.type != told["Type"]:
            raise InvalidBatch(
                f"RRSet of type {told['Type']} with DNS name {told['Name']} is not permitted as it conflicts with "
                f"other records with the same DNS name"
            )
        one_is_simple = each.set_identifier is None or told.get("SetIdentifier") is None
        if each.name == told["Name"] and each.type == told["Type"] and one_is_simple:
            raise InvalidBatch(f"{told['Name']} {told['Type']}: sets with and without an identifier cannot be mixed")


def _matches(kept: RecordSet, told: Told) -> bool:
    return (
        str(kept.ttl) == str(told.get("TTL"))
        and sorted(kept.records) == sorted(told["ResourceRecords"])
        and kept.alias_target == told.get("AliasTarget")
    )


def _identity(kept: RecordSet) -> tuple[str, str | None, str | None]:
    return kept.name, kept.type, kept.set_identifier


def _stored_name(name: str) -> str:
    """In lower case, with its final dot; what is special comes back as an octal escape."""
    return re.sub(r"\*", r"\\052", name.lower().removesuffix(".") + ".")


def _place(kept: RecordSet) -> tuple[str, str]:
    return _order(kept.name), kept.type or ""


def _order(name: str) -> str:
    return ".".join(reversed(name.removesuffix(".").split("."))) + "."


class Quiet(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Tests speak for themselves."""


class Route53Server:
    """The far side, one request at a time, and how it misbehaves."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.throttled_by: Callable[[], float] | None = None
        """The clock by which the sixth request of a second is turned away; without one, none is."""
        self.refusals: deque[tuple[int, str]] = deque()
        """Codes that the next requests get, in turn."""
        self.forbidden = ""
        """A name that no change may hold, as a condition of IAM says it."""
        self.answers_lost = 0
        """So many of the next changes are carried out, and nobody is told."""
        self._released = threading.Event()
        self._times: deque[float] = deque(maxlen=PER_SECOND)
        self._turn = threading.Lock()
        self.backend = StrictBackend("aws", ACCOUNT)
        route53_backends[ACCOUNT]["aws"] = self.backend
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def zone(self, name: str, *, private: bool = False) -> Zone:
        """A new zone; others of that name may be there already."""
        made = self.backend.create_hosted_zone(f"{name}.", private, vpcid="vpc-1" if private else None)
        made.rrsets[0].ttl = 172800
        return Zone(name=name, id=made.resource_id, private=private)

    def write(self, zone: Zone, action: str, **told: Any) -> None:
        """Somebody else's hand, right at the backend."""
        change = {"Action": action, "ResourceRecordSet": told}
        self.backend.change_resource_record_sets(zone.id, [change])

    def sets(self, zone: Zone) -> Sequence[RecordSet]:
        return sorted(self.backend.get_hosted_zone(zone.id).rrsets, key=_place)

    @cached_property
    def account(self) -> Route53Zones:
        """Without a budget, and the same for all: to make one takes longer than most tests."""
        return self.zones()

    def zones(self, read_seconds: float = 20.0, budget: Budget | None = None) -> Route53Zones:
        return Route53Zones(endpoint=self.url, budget=budget or Budget(), read_seconds=read_seconds)

    def _answer(self, environ: Told, start_response: Callable[..., Any]) -> Iterable[bytes]:
        change = environ["REQUEST_METHOD"] == "POST"
        with self._turn:
            self.requests["change" if change else "rrset" if environ["PATH_INFO"].endswith("rrset") else "zones"] += 1
            if refused := self._refusal() or (self._forbids(environ) if change else None):
                start_response(f"{refused[0]} Refused", [("Content-Type", "text/xml")])
                return [_error(refused[1])]
            body = list(self._app(environ, start_response))
        if change and self.answers_lost:
            self.answers_lost -= 1
            self._released.wait(10)
        return body

    def _forbids(self, environ: Told) -> tuple[int, str] | None:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = BytesIO(body)
        return (403, "AccessDenied") if self.forbidden and f">{self.forbidden}".encode() in body else None

    def _refusal(self) -> tuple[int, str] | None:
        if self.refusals:
            return self.refusals.popleft()
        if self.throttled_by is None:
            return None
        now = self.throttled_by()
        if len(self._times) == PER_SECOND and now - self._times[0] < 1:
            return 400, "Throttling"
        self._times.append(now)
        return None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def throttling(self, clock: Callable[[], float]) -> Iterator[None]:
        self.throttled_by = clock
        self._times.clear()
        try:
            yield
        finally:
            self.throttled_by = None

    @contextmanager
    def losing_answers(self, count: int = 1) -> Iterator[None]:
        self.answers_lost = count
        self._released.clear()
        try:
            yield
        finally:
            self.answers_lost = 0
            self._released.set()


def _error(code: str) -> bytes:
    return (
        '<?xml version="1.0"?><ErrorResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Error>'
        f"<Type>Sender</Type><Code>{code}</Code><Message>said by the test</Message></Error>"
        "<RequestId>1</RequestId></ErrorResponse>"
    ).encode()
