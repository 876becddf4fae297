"""The requests that we send to Route 53, each within the budget, and what its refusals mean.

Reads are repeated by botocore. A write is sent once: repeated after an answer that was lost, it would be turned away by
what it did itself, and nobody could tell that from somebody else's change.
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
"""Also of a change in which one name is not allowed by a condition of IAM."""
NOT_ALLOWED = frozenset(
    {"InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException", "OptInRequired", "AuthFailure"}
    | {"MissingAuthenticationToken"}
)
PERMISSIONS = "route53:ListHostedZones, route53:ListResourceRecordSets and route53:ChangeResourceRecordSets"


class Route53Calls:
    """One account. `endpoint` is for whoever stands in for Amazon; AWS_ENDPOINT_URL says it too."""

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
        """Page after page, all of the zone or what follows from a name on."""
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
                raise TryLater(f"Route 53 does not come to the end of {zone}", saw=str(following))
            start = following

    def change(self, zone: Zone, changes: Sequence[Mapping[str, Any]]) -> str:
        """Carry out all of it. The words of Route 53 if it is turned away for what is in it; else nothing."""
        self._budget.spend("apply")
        try:
            with explained(f"change {zone}", sent="the change may have been carried out all the same"):
                self._writer.change_resource_record_sets(HostedZoneId=zone.id, ChangeBatch={"Changes": changes})
        except _InvalidBatch as error:
            return error.saw
        return ""


class _InvalidBatch(BadRecord):
    """Either a record is not what it was, or it is one that cannot be: the words do not tell them apart for sure."""


@contextmanager
def explained(what: str, *, sent: str = "") -> Iterator[None]:
    """Turn what botocore raises into our errors; `sent` is what to say if no answer came to what may have arrived."""
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
    except ValueError as error:  # botocore's word for a URL that is none
        raise Refused(
            f"cannot {what} in Route 53", saw=str(error), hint="correct the endpoint that it is told"
        ) from error


def _fault(response: Mapping[str, Any], what: str) -> ProtokubeError:
    code: str = response.get("Error", {}).get("Code", "")
    saw = f"{code}: {response.get('Error', {}).get('Message', '')}"
    if code in ("InvalidChangeBatch", "InvalidInput"):
        return _InvalidBatch(f"Route 53 does not {what} so", saw=saw)
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
