"""The XML of Route 53, beside what Amazon's own library makes of the same."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import botocore.session
import pytest
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import TryLater
from protokube.providers.dns.route53_xml import change_request, error_of, fields_of, page_of

MODEL = botocore.session.get_session().get_service_model("route53")
CHANGE, LIST = (MODEL.operation_model(f"{verb}ResourceRecordSets") for verb in ("Change", "List"))
PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f\x85"), max_size=40)


def a_change(*values: str, name: str = "a.example.com.", **more: Any) -> dict[str, Any]:
    told = {"Name": name, "Type": "TXT", "TTL": 60, "ResourceRecords": [{"Value": each} for each in values], **more}
    return {"Action": "CREATE", "ResourceRecordSet": told}


def tree(element: ET.Element) -> Any:
    return element.tag, element.text or "", sorted(map(tree, element)) if len(element) else []


@given(st.lists(st.lists(PLAIN, min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_change_is_written_as_amazon_does_it(values: list[list[str]]) -> None:
    changes = [a_change(*each) for each in values]
    serializer = create_serializer("rest-xml", include_validation=False)
    theirs = serializer.serialize_to_request({"HostedZoneId": "Z1", "ChangeBatch": {"Changes": changes}}, CHANGE)

    assert tree(ET.fromstring(change_request(changes))) == tree(ET.fromstring(theirs["body"]))


def test_a_record_set_that_is_read_and_deleted_keeps_its_health_check() -> None:
    assert b"<HealthCheckId>check-1</HealthCheckId>" in change_request([a_change("x", HealthCheckId="check-1")])


LISTED = b"""<?xml version="1.0"?>
<ListResourceRecordSetsResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><ResourceRecordSets>
<ResourceRecordSet><Name>\\052.example.com.</Name><Type>TXT</Type><TTL>300</TTL><ResourceRecords>
<ResourceRecord><Value>"a &lt;b&gt; &amp;"</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>
<ResourceRecordSet><Name>b.example.com.</Name><Type>A</Type><SetIdentifier>one</SetIdentifier><AliasTarget>
<HostedZoneId>Z1</HostedZoneId><DNSName>elb.example.net.</DNSName><EvaluateTargetHealth>false</EvaluateTargetHealth>
</AliasTarget></ResourceRecordSet></ResourceRecordSets><IsTruncated>true</IsTruncated><MaxItems>2</MaxItems>
<NextRecordName>c.example.com.</NextRecordName><NextRecordType>A</NextRecordType></ListResourceRecordSetsResponse>"""


def test_a_page_is_read_as_amazon_does_it() -> None:
    items, page = page_of(LISTED, "list")
    theirs = create_parser("rest-xml").parse({"body": LISTED, "headers": {}, "status_code": 200}, LIST.output_shape)[
        "ResourceRecordSets"
    ]

    ours = [fields_of(each) for each in items]

    assert ours[0] == {**theirs[0], "TTL": "300"}
    assert ours[1]["AliasTarget"]["DNSName"] == theirs[1]["AliasTarget"]["DNSName"]
    assert ours[1]["SetIdentifier"] == "one"
    assert (page["IsTruncated"], page["NextRecordName"]) == ("true", "c.example.com.")


@pytest.mark.parametrize("body", [b"", b"no XML", b"<html/>", b"<List", b"{}"])
def test_an_answer_that_is_no_list_is_asked_for_later(body: bytes) -> None:
    with pytest.raises(TryLater, match="cannot be read"):
        page_of(body, "list")


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            b'<ErrorResponse xmlns="x"><Error><Code>Throttling</Code><Message>Rate exceeded</Message></Error>'
            b"<RequestId>1</RequestId></ErrorResponse>",
            "Throttling",
            "Rate exceeded",
        ),
        (
            b'<InvalidChangeBatch xmlns="x"><Messages><Message>one</Message><Message>two</Message></Messages>'
            b"</InvalidChangeBatch>",
            "InvalidChangeBatch",
            "one two",
        ),
        (b"Bad Gateway", "502", "Bad Gateway"),
        (b"<ErrorResponse/>", "502", ""),
    ],
)
def test_an_error_has_a_code_in_each_of_its_forms(body: bytes, code: str, message: str) -> None:
    assert error_of(502, body) == (code, message)
