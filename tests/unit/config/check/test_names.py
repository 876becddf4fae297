"""Names that the user wants in certificates."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders.config import completed, problems, read_back, the_problem, written
from protokube.config.check.names import hint, is_name
from protokube.errors import InvalidSpec
from protokube.pki.issue import general_name

EXAMPLE = "for example api.example.com, *.example.com or 192.0.2.1"
XN = "write it as its A-labels, which begin with `xn--`"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("münchen.example", "write it as its A-labels: xn--mnchen-3ya.example"),
        ("*.münchen.example", "write it as its A-labels: *.xn--mnchen-3ya.example"),
        ("straße.example", XN),  # the old rules and the new ones disagree on it
        ("ü" * 70, XN),
        ("ü b", XN),
        ("bad name", EXAMPLE),
        ("", EXAMPLE),
        ("a..b", EXAMPLE),
        ("example.com.", EXAMPLE),
        ("api.*.example.com", EXAMPLE),
        ("https://example.com", EXAMPLE),
        ("10.0.0.300", EXAMPLE),
        ("10.0.0.0/8", EXAMPLE),
        ("fe80::1%eth0", EXAMPLE),
        ("a" * 64, EXAMPLE),
        ("a." * 127 + "a", EXAMPLE),
        ("a.b\n", EXAMPLE),
    ],
)
def test_what_cannot_stand_in_a_certificate_is_told_with_the_form_that_can(text: str, hint: str) -> None:
    problem = the_problem(additionalSans=["ok.example.com", text])

    assert (problem.path, problem.hint) == ("additionalSans[1]", hint)
    assert problem.message == f"{text!r} is neither a DNS name nor an address"
    assert problem.where is not None


def test_names_and_addresses_of_all_kinds_are_accepted() -> None:
    names = ["api.example.com", "API.Example.com", "*.example.com", "a_b.example.com", "xn--mnchen-3ya.example"]
    names += ["localhost", "192.0.2.1", "::1", "2001:db8::1"]

    config = completed(additionalSans=names)
    assert set(names) <= set(config.cluster["pki"]["certificates"]["kube-apiserver"]["names"])


@given(st.text("aü.-_* 0%:\n", max_size=8) | st.text(max_size=6))
def test_whatever_is_accepted_can_stand_in_a_certificate_and_so_can_what_a_hint_offers(text: str) -> None:
    if is_name(text):
        general_name(text)
    elif (offered := hint(text)).startswith("write it as its A-labels: "):
        general_name(offered.removeprefix("write it as its A-labels: "))


def test_names_of_a_certificate_that_the_user_wrote_down_are_checked_where_they_stand() -> None:
    documents = list(yaml.safe_load_all(written(completed(cloud="local", additionalSans=["ok.example.com"]))))
    (listed,) = [each for each in documents[0]["spec"]["pki"]["certificates"] if each["name"] == "etcd-a-peer"]
    listed["names"].append("münchen.example")
    with pytest.raises(InvalidSpec) as caught:
        read_back(yaml.safe_dump_all(documents))

    assert [each.path for each in caught.value.problems] == ["pki.certificates.etcd-a-peer.names[3]"]


def test_a_name_is_told_once_though_it_is_in_a_certificate_too() -> None:
    assert list(problems(additionalSans=["münchen.example"])) == ["additionalSans[0]"]
