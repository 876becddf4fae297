"""The DNS name of an etcd member: one address, and a claim that fences it.

A paused machine may wake up long after another one took its volume over, and still believe that it owns the name. So a
TXT record at the same name holds the epoch of the volume and its holder. Address and claim change in one atomic
compare-and-swap batch, so a lower epoch never overwrites a higher one, whatever the order of the writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from protokube.errors import Refused
from protokube.records import Change, Record
from protokube.records.names import TYPES, address_type, make_record, normalise, normalise_address

TTL, LONGEST_TTL = 5, 10
"""A moved member stays unreachable until the TTL expires in the caching resolvers."""

CLAIM = re.compile(r"protokube epoch=(0|[1-9][0-9]{0,17}) holder=([!-~]+)")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Claim:
    """The owner of a member's name, from the TXT record at that name."""

    epoch: int
    holder: str

    def __str__(self) -> str:
        return f"protokube epoch={self.epoch} holder={self.holder}"


@dataclass(frozen=True, slots=True)
class Publish:
    """Apply these changes in one batch, including the unchanged ones: they guard the others (compare-and-swap)."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """The name already points at us, with our claim: etcd may start."""


@dataclass(frozen=True, slots=True)
class Yield:
    """A higher epoch has the name: we no longer hold the volume, whatever we believe."""

    claim: Claim
    why: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Change nothing; a user must decide."""

    why: str
    hint: str


MemberPlan = Publish | Settled | Yield | Refuse


def parse_claim(text: str) -> Claim | None:
    found = CLAIM.fullmatch(text)
    return Claim(epoch=int(found[1]), holder=found[2]) if found else None


def read_claim(observed: Sequence[Record], name: str) -> Claim | None:
    """The claim with the highest epoch at a name; None if there is none that can be read."""
    return next(iter(_claims(observed, name)), None)


def _claims(observed: Sequence[Record], name: str) -> list[Claim]:
    texts = [text for record in observed if record.key == (name, "TXT") for text in record.values]
    return sorted((claim for claim in map(parse_claim, texts) if claim), reverse=True)


def plan_member(
    observed: Sequence[Record], name: str, address: str, epoch: int, holder: str, *, adopt: bool = False
) -> MemberPlan:
    """Point a member's name at this address, unless a higher claim exists.

    `adopt` also takes over records without a claim; a claim that can be read is honoured even then.
    """
    name, address = normalise(name), normalise_address(address)
    ours = Claim(epoch=epoch, holder=holder)
    if parse_claim(str(ours)) != ours:
        raise Refused(f"cannot write the claim {str(ours)!r}", want="an epoch, and a machine id without blanks")
    seen = {record.type: record for record in observed if record.name == name and record.type in TYPES}
    for found in _claims(observed, name):
        if outranked := _outranked(name, ours, found):
            return outranked
    if (alias := seen.get("CNAME")) is not None:
        return Refuse(
            f"{name} is an alias of {alias.values[0]} (CNAME), and nothing may stand beside one",
            f"delete the CNAME of {name} if nobody needs it",
        )
    if not adopt and (refused := _unclaimed(name, seen)):
        return refused
    kind = address_type(address)
    wanted = {kind: make_record(name, kind, [address], TTL), "TXT": make_record(name, "TXT", [str(ours)], TTL)}
    if _same(seen, wanted):
        return Settled()
    return Publish(tuple(_change(seen.get(kind), wanted.get(kind), ours) for kind in TYPES if kind in seen | wanted))


def _outranked(name: str, ours: Claim, found: Claim) -> MemberPlan | None:
    if found.epoch > ours.epoch:
        return Yield(found, f"{name} is held by {found.holder} with epoch {found.epoch}, ours is {ours.epoch}")
    if found.epoch == ours.epoch and found.holder != ours.holder:
        return Refuse(
            f"{name} is held by {found.holder} with our own epoch {ours.epoch}",
            f"two machines believe that they hold one volume: look whether {found.holder} still has it attached, "
            f"then take it over anew on one of them, which raises the epoch",
        )
    return None


def _unclaimed(name: str, seen: dict[str, Record]) -> Refuse | None:
    """Why existing records may not be overwritten: they carry no claim."""
    hint = f"delete the records of {name} if nobody needs them, or adopt them"
    if (txt := seen.get("TXT")) is not None:
        strange = [text for text in txt.values if not parse_claim(text)]
        return Refuse(f"the TXT record of {name} is not ours: {strange[0]!r}", hint) if strange else None
    others = [f"{record.type} {', '.join(record.values)}" for _, record in sorted(seen.items())]
    return Refuse(f"{name} exists without a claim: {'; '.join(others)}", hint) if others else None


def _same(seen: dict[str, Record], wanted: dict[str, Record]) -> bool:
    """A provider may store another TTL than requested; any short one will do."""
    return seen.keys() == wanted.keys() and all(
        seen[kind].values == record.values and seen[kind].ttl <= LONGEST_TTL for kind, record in wanted.items()
    )


def _change(before: Record | None, after: Record | None, ours: Claim) -> Change:
    why = f"{ours.holder} holds it, epoch {ours.epoch}"
    if before is not None and after is not None and before.values == after.values and before.ttl <= LONGEST_TTL:
        return Change(before=before, after=before, why=f"guards the others; {why}")
    return Change(before=before, after=after, why=why)
