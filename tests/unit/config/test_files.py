"""The user's own files: where they lie, what is in them, and for whom they are."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.config.files import content, is_for, mode, place


@given(st.binary(max_size=40), st.booleans(), st.integers(1, 20))
def test_base64_is_read_with_and_without_its_padding_and_in_lines_of_any_length(
    data: bytes, padded: bool, width: int
) -> None:
    text = b64encode(data).decode()
    text = text if padded else text.rstrip("=")
    lines = "".join(f"{text[start : start + width]}\n" for start in range(0, len(text), width))

    assert content({"content": text, "isBase64": True}) == data
    assert content({"content": lines, "isBase64": True}) == data


@given(st.text(max_size=20).filter(str.isprintable))
def test_what_is_not_called_base64_is_taken_as_it_is(text: str) -> None:
    assert content({"content": text}) == text.encode()


@pytest.mark.parametrize("text", ["not base64!", "YQ=a", "Y", "Y=Q=", "ü", "YWI_"])
def test_what_is_called_base64_and_is_not_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        content({"content": text, "isBase64": True})


@pytest.mark.parametrize(("text", "number"), [("0440", 0o440), ("440", 0o440), ("0777", 0o777), ("", 0o440)])
def test_a_mode_is_octal(text: str, number: int) -> None:
    assert mode({"mode": text}) == number


def test_a_mode_that_nobody_said_is_the_originals() -> None:
    assert mode({}) == 0o440


@pytest.mark.parametrize("text", ["rw-r", "0o644", "4755", "1777", "0240", "9", "44", "0888", "0440\n", "-440", "٤٤٠"])
def test_what_is_no_mode_or_locks_its_owner_out_or_lends_rights_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a file mode"):
        mode({"mode": text})


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"path": "/etc/motd"}, "/etc/motd"),
        ({"path": ""}, "/srv/kubernetes/assets/m"),
        ({}, "/srv/kubernetes/assets/m"),
    ],
)
def test_a_file_whose_place_is_not_said_lies_among_the_assets(fields: dict[str, Any], where: str) -> None:
    assert place("m", fields) == where


def test_no_roles_are_all_roles() -> None:
    assert is_for({}, "Master")
    assert is_for({"roles": []}, "Bastion")
    assert is_for({"roles": ["Node", "Master"]}, "Master")
    assert not is_for({"roles": ["Node"]}, "Master")
