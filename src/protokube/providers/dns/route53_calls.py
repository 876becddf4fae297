"""The requests to Route 53, each within the budget, and the meaning of its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.clients.aws_account import Account
from protokube.providers.clients.aws_http import READ_SECONDS, AnswerLost, AwsHttp, Reply, Unreached
from protokube.providers.dns import BadRecord, NotAllowed
from protokube.providers.dns.budget import Budget, Kind
from protokube.providers.dns.route53_values import RecordSet
from protokube.providers.dns.route53_xml import VERSION, change_request, error_of, fields_of, page_of
from protokube.records.zones import Zone

REGION = "us-east-1"
"""Route 53 has no regions, but requests to it are signed for this one."""
PAGE, SHORT_PAGE = "300", "20"
BUSY = frozenset({"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException"})
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed"})
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "NotAuthorized"})
"""Also the reply to a change in which an IAM condition forbids one name."""
NOT_ALLOWED = frozenset(
    {"InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException", "OptInRequired", "AuthFailure"}
    | {"MissingAuthenticationToken"}
)
PERMISSIONS = "route53:ListHostedZones, route53:ListResourceRecordSets and route53:ChangeResourceRecordSets"


class Route53Calls:
    """One account. `endpoint` is for an emulator; AWS_ENDPOINT_URL is its default."""

    def __init__(self, budget: Budget, *, endpoint: str | None = None, read_seconds: float = READ_SECONDS) -> None:
        self._budget = budget
        with explained("use the account"):
            self._http = AwsHttp(Account("route53", REGION), endpoint, read_seconds)

    def zones(self) -> Iterator[Zone]:
        start: Mapping[str, str] = {}
        while True:
            self._budget.spend("zones")
            found, page = self._listed("list the zones", f"/{VERSION}/hostedzone", start)
            for each in found:
                config = each.get("Config") or {}
                yield Zone(
                    name=each["Name"].removesuffix(".").lower(),
                    id=each["Id"].removeprefix("/hostedzone/"),
                    private=config.get("PrivateZone") == "true",
                )
            if page.get("IsTruncated") != "true":
                return
            start = {"marker": page["NextMarker"]}

    def record_sets(self, zone: Zone, kind: Kind, first: str = "") -> Iterator[Sequence[RecordSet]]:
        """Record sets in pages: the whole zone, or from one name on."""
        start: Mapping[str, str] = {"name": first} if first else {}
        most = SHORT_PAGE if first else PAGE
        while True:
            self._budget.spend(kind)
            found, page = self._listed(f"list {zone}", _path(zone), {"maxitems": most, **start})
            yield found
            if page.get("IsTruncated") != "true":
                return
            keys = {"name": "NextRecordName", "type": "NextRecordType", "identifier": "NextRecordIdentifier"}
            following = {key: page[field] for key, field in keys.items() if page.get(field)}
            if following == start:
                raise TryLater(f"Route 53 does not advance in the list of {zone}", saw=str(following))
            start = following

    def change(self, zone: Zone, changes: Sequence[Mapping[str, Any]]) -> str:
        """Apply all changes. Returns the error text if Route 53 rejects the batch for its content; "" on success."""
        self._budget.spend("apply")
        what = f"change {zone}"
        try:
            with explained(what, sent="the change may have been carried out all the same"):
                reply = self._http.write(f"{_path(zone)}/", change_request(changes))
            _check(reply, what)
        except _InvalidBatch as error:
            return error.saw
        return ""

    def _listed(self, what: str, path: str, query: Mapping[str, str]) -> tuple[Sequence[RecordSet], Mapping[str, str]]:
        with explained(what):
            reply = self._http.read(path, query, _is_busy)
        _check(reply, what)
        try:
            items, page = page_of(reply.body, what)
            return [fields_of(each) for each in items], page
        except KeyError as error:
            raise TryLater(f"Route 53 could not {what}", saw=f"an answer without {error}") from error


class _InvalidBatch(BadRecord):
    """A record has changed or is invalid; the error text does not tell reliably which."""


@contextmanager
def explained(what: str, *, sent: str = "") -> Iterator[None]:
    """Say what failed; `sent` is the hint if a request may have arrived without a reply."""
    try:
        yield
    except Unreached as error:
        raise TryLater(f"Route 53 cannot be reached to {what}", saw=str(error)) from error
    except AnswerLost as error:
        raise TryLater(f"Route 53 gave no answer when asked to {what}", saw=str(error), hint=sent) from error
    except Refused as error:
        hint = error.hint or f"give the machine a role that has {PERMISSIONS}"
        raise Refused(f"cannot {what} in Route 53: {error.message}", saw=error.saw, hint=hint) from error
    except TryLater as error:
        raise TryLater(f"cannot {what} in Route 53: {error.message}", saw=error.saw) from error


def _path(zone: Zone) -> str:
    return f"/{VERSION}/hostedzone/{quote(zone.id, safe='')}/rrset"


def _is_busy(reply: Reply) -> bool:
    return reply.status >= 400 and error_of(reply.status, reply.body)[0] in (*BUSY, "PriorRequestNotComplete")


def _check(reply: Reply, what: str) -> None:
    if reply.status >= 300:
        raise _fault(reply, what)


def _fault(reply: Reply, what: str) -> ProtokubeError:
    code, message = error_of(reply.status, reply.body)
    saw = f"{code}: {message}"
    if code in ("InvalidChangeBatch", "InvalidInput"):
        return _InvalidBatch(f"Route 53 rejects the request to {what}", saw=saw)
    if code == "PriorRequestNotComplete":
        return TryLater(
            f"Route 53 is still busy with an earlier change and did not {what}",
            saw=saw,
            hint="nothing was changed; ask again in a few seconds, and later each time",
        )
    if code in BUSY:
        return TryLater(
            f"Route 53 takes no more requests of this account for now and did not {what}",
            saw=saw,
            hint="it takes five a second from all who share the account; ask again in some seconds, later each time",
        )
    if code in EXPIRED:
        return TryLater(f"cannot {what} in Route 53", saw=saw, hint="the credentials are renewed; is the clock right?")
    if code == "NoSuchHostedZone":
        return Refused(f"cannot {what} in Route 53", saw=saw, hint="was the zone deleted? its id has to be given anew")
    if code in DENIED:
        return NotAllowed(f"Route 53 does not let us {what}", saw=saw, hint=f"our account needs {PERMISSIONS}")
    if code in NOT_ALLOWED or reply.status == 403:
        return Refused(f"Route 53 does not let us {what}", saw=saw, hint=f"our account needs {PERMISSIONS}")
    return TryLater(f"Route 53 could not {what}", saw=saw)
