"""The XML of Route 53's API, version 2013-04-01: what we send, and what we read of an answer. Pure.

Only the fields that we use are read; a record set that names something else is kept as one with fields of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from protokube.errors import TryLater
from protokube.providers.dns.route53_values import RecordSet

VERSION = "2013-04-01"
NAMESPACE = f"https://route53.amazonaws.com/doc/{VERSION}/"
SPECIAL = re.compile(r"[&<>]")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def change_request(changes: Sequence[Mapping[str, Any]]) -> bytes:
    """The body of ChangeResourceRecordSets."""
    return "".join(
        (
            f'<ChangeResourceRecordSetsRequest xmlns="{NAMESPACE}"><ChangeBatch><Changes>',
            *(
                f"<Change><Action>{each['Action']}</Action>{_set(each['ResourceRecordSet'])}</Change>"
                for each in changes
            ),
            "</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>",
        )
    ).encode()


def _set(found: RecordSet) -> str:
    values = "".join(
        f"<ResourceRecord><Value>{_escaped(each['Value'])}</Value></ResourceRecord>"
        for each in found["ResourceRecords"]
    )
    health = f"<HealthCheckId>{_escaped(found['HealthCheckId'])}</HealthCheckId>" if "HealthCheckId" in found else ""
    return (
        f"<ResourceRecordSet><Name>{_escaped(found['Name'])}</Name><Type>{found['Type']}</Type><TTL>{found['TTL']}</TTL>"
        f"<ResourceRecords>{values}</ResourceRecords>{health}</ResourceRecordSet>"
    )


def _escaped(text: str) -> str:
    return SPECIAL.sub(lambda found: ENTITIES[found[0]], text) if SPECIAL.search(text) else text


def page_of(body: bytes, what: str) -> tuple[list[Element], Mapping[str, str]]:
    """The elements of the list in an answer, and its other fields. Raises TryLater for what is no such answer."""
    root = _parsed(body)
    if root is None or not _tag(root).startswith("List"):
        raise TryLater(f"Route 53 could not {what}", saw=f"an answer that cannot be read: {_excerpt(body)}")
    items: list[Element] = []
    fields: dict[str, str] = {}
    for each in root:
        if _tag(each) in ("HostedZones", "ResourceRecordSets"):
            items = list(each)
        else:
            fields[_tag(each)] = each.text or ""
    return items, fields


def fields_of(element: Element) -> RecordSet:
    """A hosted zone or a record set, as its fields."""
    found: dict[str, Any] = {}
    for each in element:
        name = _tag(each)
        if name == "ResourceRecords":
            found[name] = [fields_of(record) for record in each]
        else:
            found[name] = fields_of(each) if len(each) else each.text or ""
    return found


def error_of(status: int, body: bytes) -> tuple[str, str]:
    """The code and the message of an answer that is an error."""
    root = _parsed(body)
    if root is None:
        return str(status), _excerpt(body)
    code = _text(root, "Code") or ("" if _tag(root) == "ErrorResponse" else _tag(root)) or str(status)
    return code, " ".join(_texts(root, "Message"))


def _parsed(body: bytes) -> Element | None:
    try:
        return ET.fromstring(body)  # noqa: S314  # of the service that we trust with our zones
    except ET.ParseError:
        return None


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _texts(root: Element, tag: str) -> Iterator[str]:
    return (each.text for each in root.iter() if _tag(each) == tag and each.text)


def _text(root: Element, tag: str) -> str:
    return next(_texts(root, tag), "")


def _excerpt(body: bytes) -> str:
    return body[:200].decode(errors="replace").strip()
