"""Map response codes of DNS servers and network errors to our errors, with hints for the operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dns.exception
import dns.message
import dns.rcode
import dns.tsig
import dns.xfr

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.dns import BadRecord, NotAllowed, Stale

STALE = frozenset({"NXRRSET", "YXRRSET", "NXDOMAIN", "YXDOMAIN"})
BAD_RECORD = frozenset({"FORMERR", "NOTZONE"})
NOT_ALLOWED = frozenset({"REFUSED", "NOTAUTH"})
"""Also the reply to an update in which a policy forbids a single name."""
FEW_VALUES = 100
KEY_FAULTS = (
    dns.tsig.PeerError,
    dns.tsig.BadKey,
    dns.tsig.BadSignature,
    dns.tsig.BadAlgorithm,
    dns.message.UnknownTSIGKey,
)


def update_fault(code: str, zone: str, server: str, most_values: int) -> ProtokubeError | None:
    """The error for the reply to an update; None is success. `most_values`: values in the largest record."""
    if code == "SERVFAIL" and most_values > FEW_VALUES:
        return BadRecord(
            f"{server} rejects the change of {zone}",
            saw=f"{code}, and a record of {most_values} values",
            hint=f"BIND takes {FEW_VALUES} values in one record, unless its `max-records-per-type` says more",
        )
    if code in STALE:
        return Stale(f"a record of {zone} is not what the change was planned from", saw=code)
    if code in BAD_RECORD:
        return BadRecord(f"{server} rejects the change of {zone}", saw=code)
    found = fault(code, f"change {zone}", server)
    if code in NOT_ALLOWED and found is not None:  # a per-name policy refuses the whole update for one name
        return NotAllowed(found.message, saw=found.saw, hint=found.hint)
    return found


def query_fault(code: str, name: str, server: str) -> ProtokubeError | None:
    """The error for the reply to a query; None is success, and so is NXDOMAIN."""
    if code == "REFUSED":
        return Refused(
            f"{server} does not answer us about {name}", saw=code, hint="does it serve that zone, and may we ask it?"
        )
    return None if code == "NXDOMAIN" else fault(code, f"answer for {name}", server)


def fault(code: str, what: str, server: str) -> ProtokubeError | None:
    match code:
        case "NOERROR":
            return None
        case "REFUSED":
            return Refused(
                f"{server} does not let us {what}",
                saw=code,
                hint="allow our key to update and transfer the zone: in BIND `update-policy` and `allow-transfer`, "
                "in Knot an `acl` with the actions update and transfer",
            )
        case "NOTAUTH" | "NOTIMP":
            return Refused(
                f"{server} cannot {what}",
                saw=code,
                hint="give the address of the zone's primary server, and a key that it knows",
            )
        case _:
            return TryLater(f"{server} could not {what}", saw=code)


@contextmanager
def explained(what: str, server: str) -> Iterator[None]:
    """Turn exceptions of the network and of dnspython into our errors."""
    try:
        yield
    except dns.xfr.TransferError as error:
        raise fault(dns.rcode.to_text(error.rcode), what, server) or TryLater(f"{server} broke off") from error
    except (dns.tsig.PeerBadTime, dns.tsig.BadTime) as error:
        raise TryLater(
            f"{server} and we do not agree on the time", saw=str(error), hint="set both clocks by NTP"
        ) from error
    except dns.tsig.PeerBadKey as error:
        raise NotAllowed(
            f"{server} and we do not share the key",
            saw=str(error),
            hint="give both the same name, the same secret and hmac-sha256; Knot says so too where no `acl` allows it",
        ) from error
    except KEY_FAULTS as error:
        raise Refused(
            f"{server} and we do not share the key",
            saw=str(error),
            hint="give both the same name, the same secret and hmac-sha256",
        ) from error
    except dns.exception.TooBig as error:
        raise BadRecord("the changes do not fit into one DNS message", hint="apply fewer at a time") from error
    except (dns.exception.Timeout, OSError, EOFError) as error:
        raise TryLater(f"{server} does not answer", saw=str(error), hint="does it run, and let us in?") from error
    except dns.exception.DNSException as error:
        raise TryLater(f"{server} answers what we do not understand", saw=str(error) or type(error).__name__) from error
