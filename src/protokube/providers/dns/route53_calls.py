"""The requests to Route 53, each within the budget, and the meaning of its errors.

botocore retries reads. A write is sent once: a retry after a lost reply would fail because of its own first attempt,
and that looks the same as a change by another writer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import botocore.exceptions
import botocore.session
from botocore.config import Config

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.dns import BadRecord, NotAllowed
from protokube.providers.dns.budget import Budget, Kind
from protokube.providers.dns.route53_values import RecordSet
from protokube.records.zones import Zone

REGION = "us-east-1"
"""Route 53 has no regions, but requests to it are signed for this one."""
CONNECT_SECONDS, READ_SECONDS, READ_ATTEMPTS = 3.0, 10.0, 3
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
        session = botocore.session.get_session()
        with explained("use the account"):
            self._reader, self._writer = (
                session.create_client(
                    "route53",
                    region_name=REGION,
                    endpoint_url=endpoint or os.environ.get("AWS_ENDPOINT_URL"),
                    config=Config(
                        connect_timeout=CONNECT_SECONDS,
                        read_timeout=read_seconds,
                        retries={"mode": "standard", "total_max_attempts": attempts},
                    ),
                )
                for attempts in (READ_ATTEMPTS, 1)
            )

    def zones(self) -> Iterator[Zone]:
        start: Mapping[str, str] = {}
        while True:
            self._budget.spend("zones")
            with explained("list the zones"):
                page = self._reader.list_hosted_zones(**start)
            for found in page["HostedZones"]:
                yield Zone(
                    name=found["Name"].removesuffix(".").lower(),
                    id=found["Id"].removeprefix("/hostedzone/"),
                    private=bool(found.get("Config", {}).get("PrivateZone")),
                )
            if not page.get("IsTruncated"):
                return
            start = {"Marker": page["NextMarker"]}

    def record_sets(self, zone: Zone, kind: Kind, first: str = "") -> Iterator[Sequence[RecordSet]]:
        """Record sets in pages: the whole zone, or from one name on."""
        start: Mapping[str, str] = {"StartRecordName": first} if first else {}
        most = SHORT_PAGE if first else PAGE
        while True:
            self._budget.spend(kind)
            with explained(f"list {zone}"):
                page = self._reader.list_resource_record_sets(HostedZoneId=zone.id, MaxItems=most, **start)
            yield page["ResourceRecordSets"]
            if not page.get("IsTruncated"):
                return
            keys = ("RecordName", "RecordType", "RecordIdentifier")
            following = {f"Start{key}": page[f"Next{key}"] for key in keys if page.get(f"Next{key}")}
            if following == start:
                raise TryLater(f"Route 53 does not advance in the list of {zone}", saw=str(following))
            start = following

    def change(self, zone: Zone, changes: Sequence[Mapping[str, Any]]) -> str:
        """Apply all changes. Returns the error text if Route 53 rejects the batch for its content; "" on success."""
        self._budget.spend("apply")
        try:
            with explained(f"change {zone}", sent="the change may have been carried out all the same"):
                self._writer.change_resource_record_sets(HostedZoneId=zone.id, ChangeBatch={"Changes": changes})
        except _InvalidBatch as error:
            return error.saw
        return ""


class _InvalidBatch(BadRecord):
    """A record has changed or is invalid; the error text does not tell reliably which."""


@contextmanager
def explained(what: str, *, sent: str = "") -> Iterator[None]:
    """Turn exceptions of botocore into our errors; `sent` is the hint if a request may have arrived without a reply."""
    try:
        yield
    except botocore.exceptions.ClientError as error:
        raise _fault(error.response, what) from error
    except (botocore.exceptions.NoCredentialsError, botocore.exceptions.PartialCredentialsError) as error:
        raise Refused(
            f"cannot {what} in Route 53 without an account",
            saw=str(error),
            hint=f"give the machine a role that has {PERMISSIONS}",
        ) from error
    except botocore.exceptions.ParamValidationError as error:
        raise BadRecord(f"cannot {what} in Route 53", saw=str(error)) from error
    except (
        botocore.exceptions.EndpointConnectionError,
        botocore.exceptions.ConnectTimeoutError,
        botocore.exceptions.ProxyConnectionError,
    ) as error:
        raise TryLater(f"Route 53 cannot be reached to {what}", saw=str(error)) from error
    except botocore.exceptions.HTTPClientError as error:
        raise TryLater(f"Route 53 gave no answer when asked to {what}", saw=str(error), hint=sent) from error
    except botocore.exceptions.BotoCoreError as error:
        raise TryLater(f"cannot {what} in Route 53", saw=str(error)) from error
    except ValueError as error:  # botocore raises it for an invalid URL
        raise Refused(f"cannot {what} in Route 53", saw=str(error), hint="correct the endpoint URL") from error


def _fault(response: Mapping[str, Any], what: str) -> ProtokubeError:
    code: str = response.get("Error", {}).get("Code", "")
    saw = f"{code}: {response.get('Error', {}).get('Message', '')}"
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
    if code in NOT_ALLOWED or response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 403:
        return Refused(f"Route 53 does not let us {what}", saw=saw, hint=f"our account needs {PERMISSIONS}")
    return TryLater(f"Route 53 could not {what}", saw=saw)
