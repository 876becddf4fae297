"""How Route 53 writes names, texts and addresses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.name_servers import ZONE, a_text, an_address, an_alias
from protokube.providers.dns.route53_values import read_name, record_of, set_of, size, why_foreign, write_value
from protokube.records import Record


def found(kind: str, *values: str, name: str = f"a.{ZONE}.", **more: Any) -> dict[str, Any]:
    return {"Name": name, "Type": kind, "TTL": 5, "ResourceRecords": [{"Value": value} for value in values], **more}


@given(st.binary(max_size=1200))
def test_any_text_comes_back_as_it_was_and_is_plain_on_the_way(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    record = Record(name=f"a.{ZONE}", type="TXT", values=(text,), ttl=5)

    written = write_value("TXT", text)

    assert record_of(set_of(record)) == record
    assert re.fullmatch(r'"[ -~]*"', written)
    assert written.count('" "') >= (len(data) - 1) // 255


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '""'),
        ("v=spf1 -all", '"v=spf1 -all"'),
        ('say "x" \\ end', '"say \\"x\\" \\\\ end"'),
        ("ü\n", '"\\303\\274\\012"'),
        ("x" * 256, f'"{"x" * 255}" "x"'),
        ("ü" * 128, '"' + "\\303\\274" * 127 + '\\303" "\\274"'),
    ],
)
def test_a_text_is_quoted_escaped_and_cut(text: str, written: str) -> None:
    assert write_value("TXT", text) == written


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('"he" "llo"', "hello"),
        ('"he""llo"', "hello"),
        ("bare", "bare"),
        ('"a\\"b" "\\\\101"', 'a"b\\101'),
        ('"\\101\\7x"', "A7x"),
        ('"ü"', "ü"),
    ],
)
def test_a_text_that_others_wrote_is_read(written: str, text: str) -> None:
    assert record_of(found("TXT", written)) == a_text("a", text)


@pytest.mark.parametrize(
    ("escaped", "name"),
    [
        ("A.Dev.Example.com.", "a.dev.example.com"),
        ("\\052.apps.dev.", "*.apps.dev"),
        ("*.apps.dev", "*.apps.dev"),
        ("\\101b.dev.", "ab.dev"),
        ("a\\056b.dev.", "a\\056b.dev"),
        ("a\\040b.dev.", "a\\040b.dev"),
    ],
    ids=["case", "star", "plain star", "letter", "a dot in a label", "blank"],
)
def test_a_name_is_read_without_its_escapes(escaped: str, name: str) -> None:
    assert read_name(escaped) == name


def test_addresses_and_aliases_have_our_one_form() -> None:
    assert record_of(found("AAAA", "2001:0DB8::0001")) == an_address("a", "2001:db8::1")
    assert record_of(found("CNAME", f"Target.{ZONE}")) == record_of(set_of(an_alias("a"))) == an_alias("a")
    assert record_of(found("A", "10.0.0.2", "10.0.0.1")) == an_address("a", "10.0.0.1", "10.0.0.2")
    assert record_of(found("A", "nonsense")) is not None


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"SetIdentifier": "blue", "Weight": 1}, "'blue'"),
        ({"AliasTarget": {"DNSName": "elb.example.net."}}, "elb.example.net"),
        ({"TrafficPolicyInstanceId": "t"}, "traffic policy"),
        ({"ResourceRecords": []}, "without values"),
    ],
)
def test_a_set_that_is_no_plain_record_is_not_ours_and_says_why(more: dict[str, Any], why: str) -> None:
    assert record_of(found("A", "10.0.0.1", **more)) is None
    assert why in why_foreign(found("A", "10.0.0.1", **more))


def test_other_types_are_no_records_of_ours() -> None:
    assert record_of(found("MX", "10 mail.dev.")) is None
    assert not why_foreign(found("MX", "10 mail.dev."))


def test_a_set_counts_by_its_values_and_their_characters() -> None:
    assert size(set_of(an_address("a", "10.0.0.1", "10.0.0.2"))) == (2, 16)
    assert size(set_of(a_text("a", "ü"))) == (1, len('"\\303\\274"'))
