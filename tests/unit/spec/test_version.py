"""Kubernetes versions: spellings, order, and which we know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.spec.version import DEFAULT, NEWEST, NEWEST_PATCH, OLDEST, Version, normal, parse

versions = st.builds(
    Version,
    st.integers(0, 99),
    st.integers(0, 999),
    st.integers(0, 9999),
    st.sampled_from(["", "-rc.1", "-alpha.2", "+build.5", "-beta.0+meta"]),
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.34.2", Version(1, 34, 2)),
        ("v1.34.2", Version(1, 34, 2)),
        ("1.34", Version(1, 34, 0)),
        (" 1.34.2\n", Version(1, 34, 2)),
        ("1.30", Version(1, 30)),
        ("v1.35.0-rc.1", Version(1, 35, 0, "-rc.1")),
        ("1.28.3+k3s1", Version(1, 28, 3, "+k3s1")),
        ("3.5.21", Version(3, 5, 21)),
    ],
)
def test_a_version_is_read_in_each_of_its_spellings(text: str, version: Version) -> None:
    assert parse(text) == version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v",
        "1",
        "latest",
        "1.x",
        "1.34.",
        "1.34.2.1",
        "-1.2",
        "1.34.2 beta",
        "1.34-",
        "V1.34",
        "\u0661.\u0663\u0664",
        "1." + "9" * 5000,
    ],
)
def test_anything_else_is_no_version(text: str) -> None:
    assert parse(text) is None
    assert normal(text) == text


def test_versions_compare_by_their_numbers_not_by_their_text() -> None:
    assert Version(1, 9) < Version(1, 10) < Version(1, 10, 1) < Version(2, 0)
    assert Version(1, 24) >= (1, 24)
    assert Version(1, 23, 17) < (1, 24)


def test_flags_depend_on_the_minor_version_only() -> None:
    assert Version(1, 34, 7, "-rc.1").series == Version(1, 34)
    assert Version(1, 34, 7).short == "1.34"


def test_a_minor_version_alone_means_its_newest_patch() -> None:
    assert normal("1.30") == f"1.30.{NEWEST_PATCH['1.30']}"
    assert normal("v1.30") == normal("1.30")


def test_a_minor_version_nobody_has_seen_means_its_first_patch() -> None:
    assert normal("1.99") == "1.99.0"


def test_a_patch_that_is_said_stays() -> None:
    assert normal("v1.30.0") == "1.30.0"
    assert normal("1.30.2-rc.0") == "1.30.2-rc.0"


def test_the_newest_patch_of_every_known_minor_version_is_known() -> None:
    known = [f"1.{minor}" for minor in range(OLDEST.minor, NEWEST.minor + 1)]

    assert list(NEWEST_PATCH) == known
    assert DEFAULT.series <= NEWEST


@given(versions)
def test_what_is_written_is_read_back_the_same(version: Version) -> None:
    assert parse(str(version)) == version
    assert parse(f"v{version}") == version


@given(st.one_of(versions.map(str), versions.map(lambda each: each.short), st.text(max_size=12)))
def test_a_normal_spelling_is_normal_already(text: str) -> None:
    assert normal(normal(text)) == normal(text)


@given(versions, versions, versions)
def test_the_order_is_one_order(one: Version, two: Version, three: Version) -> None:
    assert (one < two) + (one == two) + (one > two) == 1
    low, middle, high = sorted([one, two, three])
    assert low <= middle <= high
    assert low.series <= middle.series <= high.series


@given(versions)
def test_a_version_lies_in_its_own_series(version: Version) -> None:
    assert version.series <= version
    assert version.series.series == version.series
