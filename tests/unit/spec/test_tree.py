"""YAML as a tree whose every node knows its line."""

from __future__ import annotations

import json
import time

import pytest

from builders.spec import at, tree
from protokube.errors import InvalidSpec, Where
from protokube.spec.tree import DEEPEST, Mapping, Scalar, Sequence, read_documents


def wrong(text: str) -> list[str]:
    """What is wrong with a text, problem by problem."""
    with pytest.raises(InvalidSpec) as caught:
        read_documents(text, "f.yaml")
    return [str(each) for each in caught.value.problems]


def test_every_node_and_every_key_knows_its_line() -> None:
    document = tree(
        """\
        # a comment

        cloud: aws
        zones:
        - us-east-1a
        - us-east-1b
        kubelet:
          maxPods: 60
        """
    )

    assert document.lines == {"cloud": 3, "zones": 4, "kubelet": 7}
    assert document.line == 3
    assert at(document, "zones", 1, kind=Scalar).line == 6
    assert at(document, "kubelet", kind=Mapping).lines == {"maxPods": 8}


def test_lines_count_on_through_a_file_of_several_documents() -> None:
    first, second = read_documents("a: 1\n---\n# two\nb: 2\n", "f.yaml")

    assert (first.lines, second.lines) == ({"a": 1}, {"b": 4})


def test_a_value_in_a_block_over_several_lines_has_the_line_it_begins_on() -> None:
    document = tree(
        """\
        content: |
          one
          two
        after: x
        """
    )

    assert at(document, "content", kind=Scalar) == Scalar("one\ntwo\n", False, 1)
    assert document.lines["after"] == 4


@pytest.mark.parametrize(
    ("written", "text", "plain"),
    [
        ("1.30", "1.30", True),
        ("no", "no", True),
        ("007", "007", True),
        ("1:30", "1:30", True),
        ("2024-01-01", "2024-01-01", True),
        ("0x1f", "0x1f", True),
        ("'1.30'", "1.30", False),
        ('"no"', "no", False),
        (">-\n  folded\n  text", "folded text", False),
        ("!!str 5", "5", True),
    ],
)
def test_a_scalar_is_kept_as_it_is_written(written: str, text: str, plain: bool) -> None:
    assert at(tree(f"value: {written}"), "value", kind=Scalar) == Scalar(text, plain, 1)


@pytest.mark.parametrize("written", ["", "~", "null", "Null", "NULL"])
def test_nothing_is_written_in_several_ways(written: str) -> None:
    document = tree(f"value: {written}\nother: x")

    assert at(document, "value", kind=Scalar).is_null
    assert document.text("value") is None


@pytest.mark.parametrize("written", ["''", '"null"', "'~'", "nil", "none", "0", "false"])
def test_what_stands_in_quotes_or_is_another_word_is_not_nothing(written: str) -> None:
    assert not at(tree(f"value: {written}"), "value", kind=Scalar).is_null


def test_the_text_under_a_key_is_given_only_where_there_is_one() -> None:
    document = tree("name: a\nlist: [a]\nempty:\nquoted: ''")

    assert document.text("name") == "a"
    assert document.text("quoted") == ""
    assert [document.text(each) for each in ("list", "empty", "absent")] == [None, None, None]


def test_json_is_read_by_the_same_rules() -> None:
    written = {"kind": "Cluster", "spec": {"zones": ["a", "b"], "masters": 3, "docker": None, "on": True}}
    document = tree(json.dumps(written, indent=2))

    assert document.text("kind") == "Cluster"
    assert [at(document, "spec", "zones", index, kind=Scalar).text for index in (0, 1)] == ["a", "b"]
    assert at(document, "spec", "masters", kind=Scalar) == Scalar("3", True, 8)
    assert at(document, "spec", "docker", kind=Scalar).is_null


def test_empty_documents_are_passed_over() -> None:
    assert read_documents("", "f.yaml") == []
    assert read_documents("# only a comment\n---\n---\n~\n--- null\n", "f.yaml") == []
    assert [each.lines for each in read_documents("---\n---\na: 1\n---\n", "f.yaml")] == [{"a": 3}]


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text\n", "--- |\n block\n", "[]\n"])
def test_a_document_that_is_no_mapping_is_a_problem(text: str) -> None:
    assert wrong(text) == ["f.yaml:1: a document must be a mapping with apiVersion, kind, metadata and spec"]


def test_windows_line_ends_and_a_byte_order_mark_make_no_difference() -> None:
    assert tree("\ufeffa:\r\n  b: c\r\nd: e\r\n") == tree("a:\n  b: c\nd: e\n")


# --- aliases and merge keys


def test_an_alias_is_the_value_it_refers_to_and_keeps_that_lines() -> None:
    document = tree("size: &size 3\nnodes: *size\n")

    assert at(document, "nodes", kind=Scalar) == Scalar("3", True, 1)
    assert document.lines["nodes"] == 2


def test_an_alias_may_stand_for_a_key() -> None:
    assert tree("a: &name zone\n*name : b").text("zone") == "b"


def test_an_anchor_belongs_to_its_own_document() -> None:
    assert wrong("a: &x 1\n---\nb: *x\n") == ["f.yaml:3: not valid YAML: no `&x` before this"]


def test_an_anchor_given_again_stands_for_the_newer_value() -> None:
    document = tree("a: &x 1\nb: &x 2\nc: *x\n")

    assert document.text("c") == "2"


def test_a_merge_key_fills_in_what_the_mapping_does_not_say() -> None:
    document = tree(
        """\
        base: &base
          minSize: 1
          maxSize: 3
        group:
          <<: *base
          maxSize: 9
        """
    )
    group = at(document, "group", kind=Mapping)

    assert {name: group.text(name) for name in group.fields} == {"maxSize": "9", "minSize": "1"}
    assert group.lines == {"maxSize": 6, "minSize": 2}


def test_of_several_merged_mappings_the_first_wins() -> None:
    document = tree("x: &x {a: 1}\ny: &y {a: 2, b: 2}\nz:\n  <<: [*x, *y]\n")

    merged = at(document, "z", kind=Mapping)
    assert (merged.text("a"), merged.text("b")) == ("1", "2")


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    assert tree('"<<": {a: 1}').lines == {"<<": 1}


@pytest.mark.parametrize("value", ["word", "[word]", "[[a]]"])
def test_merging_anything_but_mappings_is_a_problem(value: str) -> None:
    assert wrong(f"a: 1\n<<: {value}\n") == ["f.yaml:2: `<<` merges mappings only"]


# --- what is refused


def test_a_key_given_twice_is_told_with_both_lines() -> None:
    (message,) = wrong("a: 1\nb: 2\na: 3\n")

    assert message.splitlines() == [
        "f.yaml:3: `a` is given twice, first on line 1",
        "  hint: keep one of the two; YAML would silently take the last",
    ]


def test_keys_given_twice_are_found_everywhere_at_once() -> None:
    messages = wrong("a: {x: 1, x: 2}\nb:\n- {y: 1, y: 2}\n---\nc: 1\nc: 2\n")

    assert [each.splitlines()[0] for each in messages] == [
        "f.yaml:1: `x` is given twice, first on line 1",
        "f.yaml:3: `y` is given twice, first on line 3",
        "f.yaml:6: `c` is given twice, first on line 5",
    ]


@pytest.mark.parametrize("text", ["? [a, b]\n: c\n", "{a: b}: c\n", "{? : c}\n", "'': c\n"])
def test_a_key_must_be_a_word(text: str) -> None:
    assert wrong(text) == ["f.yaml:1: a key must be a plain word"]


def test_an_alias_to_nothing_is_a_problem_at_its_line() -> None:
    assert wrong("a: 1\nb: *nothing\n") == ["f.yaml:2: not valid YAML: no `&nothing` before this"]


@pytest.mark.parametrize("text", ["a: &x [1, *x]\n", "a: &x {b: *x}\n", "&x\na: {<<: *x}\n"])
def test_a_value_cannot_hold_itself(text: str) -> None:
    (message,) = wrong(text)

    assert message.endswith("not valid YAML: `*x` is inside the value it refers to")


def billion_laughs(levels: int) -> str:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_unfold_without_end_are_refused_at_once() -> None:
    started = time.monotonic()

    (message,) = wrong(billion_laughs(30))

    assert message == "f.yaml:6: not valid YAML: aliases expand into too many values"
    assert time.monotonic() - started < 20, "unfolded, they would take years"


def test_aliases_that_unfold_into_thousands_are_still_read() -> None:
    assert len(at(tree(billion_laughs(4)), "a3", 9, 9, 9, kind=Sequence).items) == 10


@pytest.mark.parametrize("open_", ["[", "{a: ", "- ", "? "])
def test_nesting_without_end_is_refused_without_a_crash(open_: str) -> None:
    (message,) = wrong(open_ * 100_000)

    assert message == f"f.yaml:1: not valid YAML: nested more than {DEEPEST} deep"


def test_nesting_hidden_behind_aliases_is_refused_too() -> None:
    lines = [f"x0: &x0 {'[' * 30}{']' * 30}"]
    lines += [f"x{level}: &x{level} {'[' * 30}*x{level - 1}{']' * 30}" for level in range(1, 5)]

    assert wrong("\n".join(lines)) == [f"f.yaml:4: not valid YAML: nested more than {DEEPEST} deep"]


def test_what_is_nested_just_deep_enough_is_read() -> None:
    inner = DEEPEST - 1

    assert at(tree(f"a: {'[' * inner}{']' * inner}"), "a", *([0] * (inner - 1)), kind=Sequence).items == ()
    assert len(wrong(f"a: {'[' * DEEPEST}{']' * DEEPEST}")) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [("spec:\n\tcloud: aws\n", 2), ("spec:\n  cloud: aws\n\tzones: [a]\n", 3), ("\ta: 1\n", 1)],
)
def test_a_tab_is_told_with_its_line_and_what_to_do(text: str, line: int) -> None:
    (message,) = wrong(text)

    assert message.startswith(f"f.yaml:{line}: not valid YAML: ")
    assert message.endswith("hint: indent with spaces")


def test_a_bracket_left_open_is_told_with_the_line_it_was_opened_on() -> None:
    (message,) = wrong("a: 1\nzones: [b, c\nd: 2\n")

    assert message == (
        "f.yaml:3: not valid YAML: while parsing a flow sequence (from line 2 on) did not find expected ',' or ']'"
    )


@pytest.mark.parametrize(
    ("character", "shown"), [("\x00", "U+0000"), ("\x07", "U+0007"), ("\x1b", "U+001B"), ("\ud800", "U+D800")]
)
def test_a_character_that_yaml_forbids_is_told_with_its_line(character: str, shown: str) -> None:
    assert wrong(f"a: 1\nb: x{character}y\n") == [f"f.yaml:2: not valid YAML: the character {shown} is not allowed"]


@pytest.mark.parametrize(
    "text", ["a: 'open", "a: b: c", "a: @x", "%YAML 9.9\n---\na: b", "a: *", "{a: 1]", 'a: "\\ud800"', "a: |9999\n x"]
)
def test_text_that_is_no_yaml_is_a_problem_with_a_line(text: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_documents(text, "f.yaml")

    (problem,) = caught.value.problems
    assert problem.message.startswith("not valid YAML: ")
    assert isinstance(problem.where, Where)
    assert "\n" not in problem.message


def test_what_was_wrong_before_the_text_became_unreadable_is_told_as_well() -> None:
    messages = wrong("a: 1\na: 2\n---\nb: [\n")

    assert [each.split(": ")[0] for each in messages] == ["f.yaml:2", "f.yaml:4"]


def test_tags_change_nothing_and_run_nothing() -> None:
    document = tree("a: !!python/object/apply:os.system [echo hello]\nb: !!binary aGk=\nc: !mine {d: e}\n")

    assert at(document, "a", 0, kind=Scalar).text == "echo hello"
    assert document.text("b") == "aGk="
    assert at(document, "c", kind=Mapping).text("d") == "e"
