"""The picture of the packages shows what import-linter sees, or is not drawn."""

from __future__ import annotations

import pytest
from picture import ROWS, draw, imports, reduced, rows

TEXT = ROWS.read_text("utf-8")


def test_every_arrow_of_the_picture_is_an_import_and_none_that_matters_is_missing() -> None:
    found = imports()
    arrows = reduced(found)

    assert arrows <= found
    reached = {(of, to) for of, to in arrows}
    while more := {(a, d) for a, b in reached for c, d in arrows if b == c} - reached:
        reached |= more
    assert found <= reached, "what was left out follows from what is drawn"


def test_a_row_that_lacks_a_package_is_refused() -> None:
    with pytest.raises(ValueError, match="spec is in no row"):
        draw("\n".join(line for line in TEXT.splitlines() if not line.startswith("spec:")), frozenset())


def test_a_package_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no package cloud"):
        draw(f"{TEXT}cloud: not built yet\n", frozenset())


def test_an_import_that_leads_up_is_refused() -> None:
    with pytest.raises(ValueError, match="config imports agent, which is not below it"):
        draw(TEXT, frozenset({("config", "agent")}))


def test_an_import_that_follows_from_two_others_is_left_out() -> None:
    assert reduced(frozenset({("a", "b"), ("b", "c"), ("a", "c")})) == {("a", "b"), ("b", "c")}


def test_rows_are_lines_with_packages_side_by_side() -> None:
    assert rows("# a comment\na: one | b: two: three\n") == [{"a": "one", "b": "two: three"}]
