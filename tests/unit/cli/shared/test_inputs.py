"""What commands read: files, directories, standard input; and what they say when they cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.command import MINIMAL, Call
from builders.spec import a_cluster, a_group
from protokube.cli.shared.inputs import read_specs
from protokube.errors import ExitCode


def test_several_files_are_one_cluster(call: Call, here: Path) -> None:
    (here / "cluster.yaml").write_text(a_cluster())
    (here / "nodes.yaml").write_text(a_group("role: Node\nminSize: 7"))

    answer = call("complete", "cluster.yaml", "nodes.yaml", "--why", "instanceGroups.nodes.minSize")

    assert answer.out == "instanceGroups.nodes.minSize is 7: you set it at nodes.yaml:7.\n"


def test_a_directory_stands_for_the_documents_in_it(here: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "notes.txt", "d.yaml~", ".hidden"):
        (here / name).write_text(name)
    (here / "deeper.yaml").mkdir()

    assert read_specs((".",)) == [("a.yml", "a.yml"), ("b.yaml", "b.yaml"), ("c.json", "c.json")]
    assert [name for name, _ in read_specs((str(here),))] == [
        str(here / each) for each in ("a.yml", "b.yaml", "c.json")
    ]


def test_a_directory_of_documents_is_one_cluster(call: Call, here: Path) -> None:
    (here / "specs").mkdir()
    (here / "specs" / "cluster.yaml").write_text(a_cluster())
    nodes = {"apiVersion": "protokube.io/v1alpha1", "kind": "InstanceGroup", "metadata": {"name": "nodes"}}
    (here / "specs" / "nodes.json").write_text(json.dumps({**nodes, "spec": {"role": "Node", "minSize": 7}}))

    assert "minSize: 7" in call("complete", "specs").out


def test_a_directory_without_documents_is_told_with_what_would_be_read(call: Call, here: Path) -> None:
    (here / "specs").mkdir()
    answer = call("complete", "specs")

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    assert answer.err.splitlines() == ["error: specs holds no document", "  want: files ending in .yaml, .yml, .json"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing.yaml", "No such file or directory"),
        ("a" * 5000, "File name too long"),
        (MINIMAL + "/x", "Not a directory"),
    ],
    ids=["missing", "too-long", "under-a-file"],
)
def test_a_file_that_cannot_be_read_is_told_by_name(call: Call, here: Path, name: str, why: str) -> None:
    answer = call("complete", name)

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    assert answer.err == f"error: cannot read {name}: {why}\n  hint: check the name and the permissions\n"


def test_a_link_that_leads_nowhere_is_told_by_name(call: Call, here: Path) -> None:
    (here / "specs").mkdir()
    (here / "specs" / "lost.yaml").symlink_to("nowhere.yaml")

    assert call("complete", "specs").err.startswith("error: cannot read specs/lost.yaml: No such file")


def test_a_file_that_is_not_utf_8_is_told_with_its_line(call: Call, here: Path) -> None:
    before = a_cluster().encode() + b"  # na"
    (here / "latin.yaml").write_bytes(before + b"\xefve\n")
    answer = call("complete", "latin.yaml")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert answer.err.splitlines()[1:] == [
        f"  latin.yaml:8: not UTF-8 text: invalid continuation byte at byte {len(before)} of the file",
        "    hint: save it as UTF-8",
    ]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(call: Call, here: Path) -> None:
    (here / "spec.yaml").write_text(a_cluster())
    (here / "windows.yaml").write_bytes(b"\xef\xbb\xbf" + a_cluster().replace("\n", "\r\n").encode())

    assert call("complete", "windows.yaml") == call("complete", "spec.yaml")


def test_an_empty_file_is_told_that_it_holds_no_cluster(call: Call, here: Path) -> None:
    (here / "empty.yaml").write_text("")

    assert call("complete", "empty.yaml").err.splitlines()[1] == "  empty.yaml:1: there is no document of kind Cluster"
