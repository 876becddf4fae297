"""Which set of add-ons is the current one, and who must not act on it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.addons.current import Current, decode, encode, following, why_not
from protokube.errors import Refused

DIGESTS = st.sampled_from(["a" * 64, "b" * 64, "c" * 64])


@given(st.builds(Current, number=st.integers(1, 10**12), digest=DIGESTS))
def test_it_reads_back_as_it_was_written(current: Current) -> None:
    assert decode(encode(current)) == current


@given(st.lists(DIGESTS, min_size=1))
def test_the_number_rises_with_every_change_and_with_nothing_else(asked: list[str]) -> None:
    current: Current | None = None
    for digest in asked:
        before, current = current, following(current, digest)
        changed = before is None or before.digest != digest
        assert current.digest == digest
        assert current.number == (before.number if before else 0) + changed


@pytest.mark.parametrize(
    "document",
    [
        None, 7, [], {}, {"number": 1}, {"number": 0, "digest": "a" * 64}, {"number": True, "digest": "a" * 64},
        {"number": "1", "digest": "a" * 64}, {"number": 1, "digest": "../config"}, {"number": 1.0, "digest": "a" * 64},
    ],
)  # fmt: skip
def test_what_is_spoilt_is_not_guessed(document: Any) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff"])
def test_what_is_no_json_is_not_guessed(data: bytes) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        decode(data)


@given(st.integers(0, 5), st.integers(0, 5))
def test_who_knows_an_older_set_than_the_cluster_got_does_nothing_and_says_why(known: int, recorded: int) -> None:
    assert bool(why_not(Current(number=known, digest="a" * 64), recorded)) == (known < recorded)
