"""Documents as plain values, for those who only pass them on."""

from __future__ import annotations

import pytest

from protokube.errors import InvalidSpec
from protokube.spec.plain import plain_documents


def test_documents_of_several_files_come_in_order_as_plain_values() -> None:
    found = plain_documents([("a", "a: 1\n---\nb: [x, ~]\n"), ("c", '{"c": {"d": true}}')])

    assert list(found) == [{"a": 1}, {"b": ["x", None]}, {"c": {"d": True}}]


def test_values_are_read_by_our_rules_not_by_their_looks() -> None:
    (found,) = plain_documents([("a", "version: 1.30\nno: no\nport: 443\nmode: 0440\n")])

    assert found == {"version": "1.30", "no": "no", "port": 443, "mode": "0440"}


def test_text_that_is_no_yaml_is_told_as_everywhere() -> None:
    with pytest.raises(InvalidSpec, match="1 problem in the spec"):
        list(plain_documents([("a", "a: [")]))
