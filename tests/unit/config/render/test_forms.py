"""Text of a spec as the structure a file wants, and values as flags show them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.config.render import forms
from protokube.spec.fields import quantity


def test_thresholds_become_a_mapping_of_signals() -> None:
    text = "memory.available<100Mi, nodefs.available < 10%"

    assert forms.thresholds(text) == {"memory.available": "100Mi", "nodefs.available": "10%"}
    assert forms.thresholds("") == {}


def test_pairs_become_a_mapping() -> None:
    assert forms.pairs("memory.available=1m,nodefs.available=2m30s") == {
        "memory.available": "1m",
        "nodefs.available": "2m30s",
    }
    assert forms.pairs("") == {}


def test_words_become_a_list_without_blanks_or_gaps() -> None:
    assert forms.words("pods, system-reserved,,kube-reserved") == ["pods", "system-reserved", "kube-reserved"]
    assert forms.words("") == []


def test_gates_are_text_in_a_spec_and_true_or_false_in_a_file() -> None:
    assert forms.gates({"A": "true", "B": "false", "C": "True"}) == {"A": True, "B": False, "C": True}


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("dedicated=gpu:NoSchedule", {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}),
        ("dedicated:NoExecute", {"key": "dedicated", "effect": "NoExecute"}),
        ("dedicated=:NoExecute", {"key": "dedicated", "effect": "NoExecute"}),
        ("example.com/a=b:PreferNoSchedule", {"key": "example.com/a", "value": "b", "effect": "PreferNoSchedule"}),
    ],
)
def test_a_taint_becomes_key_value_and_effect(text: str, taint: dict[str, str]) -> None:
    assert forms.taints([text]) == [taint]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("100", 100),
        ("-3", -3),
        ("+7", 7),
        ("0.5", 0.5),
        ("50.0", 50),
        ("100m", 0.1),
        ("1500m", 1.5),
        ("2k", 2000),
        ("1Ki", 1024),
        ("1.5Mi", 1572864),
        ("3n", 3e-9),
        ("1e3", 1000),
        ("1E-2", 0.01),
        ("2E", 2 * 10**18),
    ],
)
def test_a_quantity_becomes_a_plain_number(text: str, value: float) -> None:
    assert forms.number(text) == value
    assert type(forms.number(text)) is type(value)


@given(st.from_regex(r"[-+]?[0-9]{1,9}(\.[0-9]{1,6})?([eE][-+]?[0-9]{1,2}|[KMGTPE]i|[numkMGTPE])?", fullmatch=True))
@examples(200, derandomize=True)
def test_every_quantity_a_spec_accepts_is_a_number(text: str) -> None:
    assert quantity(text) is None
    assert isinstance(forms.number(text), int | float)


def test_what_is_no_quantity_is_no_number() -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        forms.number("many")


def test_lists_are_joined_for_a_flag_unless_the_flag_is_repeated() -> None:
    assert forms.flag_value(["a", "b"], repeat=False) == "a,b"
    assert forms.flag_value(["a", "b"], repeat=True) == ["a", "b"]
    assert forms.flag_value([], repeat=False) == ""


def test_mappings_are_sorted_pairs_for_a_flag_and_truth_is_lower_case() -> None:
    assert forms.flag_value({"b": "2", "a": True}, repeat=False) == "a=true,b=2"
    assert forms.flag_value({}, repeat=False) == ""


@pytest.mark.parametrize("value", [0, False, "", 1.5, "text"])
def test_single_values_are_kept_as_they_are(value: object) -> None:
    assert forms.flag_value(value, repeat=False) is value


def test_arguments_are_sorted_and_a_list_repeats_its_flag() -> None:
    flags = {"v": 2, "leader-elect": True, "empty": "", "key-file": ["a.pub", "b.pub"]}

    assert forms.arguments(flags) == [
        "--empty=",
        "--key-file=a.pub",
        "--key-file=b.pub",
        "--leader-elect=true",
        "--v=2",
    ]
