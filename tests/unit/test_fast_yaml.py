"""YAML by the parser in C: as fast as it is, and never the end of the process."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from protokube import fast_yaml
from protokube.local.pods.fields import PodProblem
from protokube.local.pods.pods import read_pod
from protokube.pki.keyset import read_keyset

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn"]), max_size=8)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)
DEEP = {
    "flow": "[" * 100_000 + "]" * 100_000,
    "dashes": "- " * 5000 + "x",
    "unfinished": "[a, " * 10_000,
    "indented": "".join(" " * level + "a:\n" for level in range(500)),
}


@given(trees)
def test_what_is_written_is_read_back_and_as_the_parser_in_python_reads_it(tree: Any) -> None:
    text = fast_yaml.dump(tree)
    assert fast_yaml.load(text) == yaml.safe_load(text) == tree


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_nesting_that_would_kill_the_process_is_refused(text: str) -> None:
    with pytest.raises(fast_yaml.TooDeep, match="more than 100 levels"):
        fast_yaml.load(text)
    with pytest.raises(ValueError, match="more than 100 levels"):
        read_keyset(text.encode())
    with pytest.raises(PodProblem, match="more than 100 levels"):
        read_pod(text)


def test_a_document_of_a_hundred_levels_is_read() -> None:
    assert fast_yaml.load("[" * 100 + "]" * 100) is not None
