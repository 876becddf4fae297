"""One form for names and addresses."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused
from protokube.records.names import address_type, inside, make_record, normalise, normalise_address, problem

LABELS = st.text("abcXYZ019_", min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("api.dev.example.com", "api.dev.example.com"),
        ("API.Dev.Example.COM.", "api.dev.example.com"),
        ("_etcd-server._tcp.dev", "_etcd-server._tcp.dev"),
        ("*.apps.dev", "*.apps.dev"),
        ("localhost", "localhost"),
        ("a" * 63 + ".dev", "a" * 63 + ".dev"),
    ],
)
def test_a_name_has_one_form(written: str, name: str) -> None:
    assert normalise(written) == name


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("", "empty label"),
        (".", "empty label"),
        ("a..b", "empty label"),
        ("a.dev..", "empty label"),
        (".dev", "empty label"),
        ("-a.dev", "'-a'"),
        ("a-.dev", "'a-'"),
        ("a b.dev", "'a b'"),
        ("a*.dev", "'a*'"),
        ("a.*.dev", "'*'"),
        ("*", "'*'"),
        ("a/b.dev", "'a/b'"),
        ("a.dev\n", "'dev\\n'"),
        ("a" * 64 + ".dev", "64 characters"),
        (".".join(["a" * 49] * 6), "299 characters"),
        ("bücher.dev", "xn--"),
        ("\u017f.dev", "xn--"),  # its lower case is an s
    ],
)
def test_what_no_resolver_would_take_is_refused_with_a_reason(name: str, wrong: str) -> None:
    with pytest.raises(Refused) as caught:
        normalise(name)

    assert wrong in caught.value.saw
    assert wrong in problem(name)


def test_the_longest_name_has_253_characters() -> None:
    longest = ".".join(["a" * 49] * 5) + ".aaa"

    assert len(longest) == 253
    assert normalise(longest + ".") == longest
    assert "254" in problem("a" + longest)


@given(st.lists(LABELS, min_size=1, max_size=5))
def test_the_one_form_is_stable(labels: list[str]) -> None:
    name = normalise(".".join(labels) + ".")

    assert normalise(name) == name
    assert normalise(name.upper()) == name


@given(st.text(max_size=30))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    if not problem(text):
        assert not problem(normalise(text))


@pytest.mark.parametrize(
    ("name", "zone", "is_inside"),
    [("a.dev", "dev", True), ("dev", "dev", True), ("adev", "dev", False), ("dev", "a.dev", False)],
)
def test_a_name_is_inside_its_zone(name: str, zone: str, is_inside: bool) -> None:
    assert inside(name, zone) is is_inside


@pytest.mark.parametrize(
    ("written", "address", "kind"),
    [
        ("10.0.0.1", "10.0.0.1", "A"),
        ("127.0.0.1", "127.0.0.1", "A"),
        ("2001:DB8:0:0::1", "2001:db8::1", "AAAA"),
        ("2001:0db8::0001", "2001:db8::1", "AAAA"),
    ],
)
def test_an_address_has_one_form(written: str, address: str, kind: str) -> None:
    assert normalise_address(written) == address
    assert address_type(address) == kind


@pytest.mark.parametrize(
    "written", ["", "10.0.0", "10.0.0.256", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "fe80::1%eth0", "x"]
)
def test_what_is_no_address_of_a_machine_is_refused(written: str) -> None:
    with pytest.raises(Refused):
        normalise_address(written)


def test_a_record_is_sorted_and_holds_each_value_once() -> None:
    record = make_record("API.dev.", "A", ["10.0.0.2", "10.0.0.1", "10.0.0.2"], 10)

    assert (record.name, record.values, record.ttl) == ("api.dev", ("10.0.0.1", "10.0.0.2"), 10)


def test_texts_are_taken_as_they_are() -> None:
    assert make_record("a.dev", "TXT", ["B ", "a"], 5).values == ("B ", "a")


def test_an_alias_holds_a_name_in_its_one_form() -> None:
    assert make_record("a.dev", "CNAME", ["B.Dev.", "b.dev"], 5).values == ("b.dev",)


@pytest.mark.parametrize("target", ["", "a b.dev", "a..dev", "b\u00fccher.dev"])
def test_an_alias_of_what_is_no_name_is_refused(target: str) -> None:
    with pytest.raises(Refused):
        make_record("a.dev", "CNAME", [target], 5)


@given(st.one_of(st.ip_addresses(v=4).map(str), st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){3}\n?", fullmatch=True)))
def test_an_ipv4_address_is_taken_or_refused_as_the_standard_library_reads_it(text: str) -> None:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        address = None
    if address is None or address.is_multicast or address.is_unspecified:
        with pytest.raises(Refused):
            normalise_address(text)
    else:
        assert normalise_address(text) == str(address)
