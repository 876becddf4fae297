"""TOML that Python reads back, versions of packages, and lists of tasks as text."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from builders.setups import DEBIAN_12
from protokube.nodeup import toml
from protokube.nodeup.distribution import available, upstream
from protokube.nodeup.listing import listing
from protokube.nodeup.values import Command, File, Packages, Task, Unit
from protokube.spec.version import Version

KEYS = st.text(st.characters(codec="utf-8"), max_size=8)
LEAVES = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), KEYS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)), max_leaves=9
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
@examples(150)
def test_whatever_is_written_as_toml_is_read_back(tree: dict[str, Any]) -> None:
    assert tomllib.loads(toml.dumps(tree)) == tree


def test_what_toml_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="NoneType has no form in TOML"):
        toml.dumps({"a": {"b": None}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.6.20~ds1-1+b1", Version(1, 6, 20)), ("1:1.4.0-6.el9_4", Version(1, 4, 0)), ("2.1", Version(2, 1, 0)),
        ("1.7.24-0ubuntu1~22.04.1", Version(1, 7, 24)), ("2.0.5-1.amzn2023.0.1", Version(2, 0, 5)),
        ("git20240101", None), ("", None),
    ],
)  # fmt: skip
def test_the_upstream_version_is_what_the_version_of_a_package_begins_with(text: str, expected: Version | None) -> None:
    assert upstream(text) == expected
    assert available(replace(DEBIAN_12, available=(("x", text),)), "x") == expected
    assert available(DEBIAN_12, "x") is None


def test_a_list_of_tasks_shows_what_will_be_true_and_no_secret() -> None:
    tasks: list[Task] = [
        File(path="/etc/a", content=b"one\n\ntwo\n", mode=0o600, after=("packages x",)),
        File(path="/etc/b", content=b"hunter2", secret=True, keep=True),
        File(path="/etc/c", content=b"\xff\x00"),
        Packages(names=("a", "b"), purpose="of x"),
        Unit(name="x.service", content="[Unit]\n", drop_ins={"y.conf": "[Service]\n"}, running=False),
        Command(name="do", run=("sh", "-c", "echo 'a b'"), check=("true", "")),
    ]

    assert (
        listing(tasks, brief=["file /etc/a"])
        == """\
file /etc/a
  mode: 0600
  after: packages x
  | (not shown here)

file /etc/b
  keep: True
  | (secret)

file /etc/c
  | (2 bytes, sha256 ea5dbf9596d187e9500f23e9a680109475341cf4e81f7e043f7d97152c10772f)

packages of x
  names: a b

unit x.service
  enabled: left as it is, running: no
  | [Unit]
  x.service.d/y.conf
  | [Service]

command do
  run: sh -c "echo 'a b'"
  check: true ''
"""
    )
