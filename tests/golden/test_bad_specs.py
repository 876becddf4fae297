"""Every way we know to write a spec wrongly, and the messages of each: `bad/NAME.yaml` gives `bad/NAME.err`.

`make golden` writes the `.err` files anew. Read the diff: each message must be true, and help.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from protokube.cli.main import run
from protokube.errors import ExitCode

BAD = Path(__file__).parent / "bad"
SPECS = sorted(BAD.glob("*.yaml"))
REFRESH = bool(os.environ.get("PROTOKUBE_REFRESH_GOLDEN"))
PLACE = re.compile(r"^  (?P<file>[\w.-]+):(?P<line>\d+)(?= [\w.\[\]/-]+:|:)")


@pytest.fixture(autouse=True)
def _beside_the_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in messages are short, and the same on every machine."""
    monkeypatch.chdir(BAD)
    monkeypatch.delenv("PROTOKUBE_STORE", raising=False)


each_spec = pytest.mark.parametrize("path", SPECS, ids=lambda each: each.stem)


@each_spec
def test_a_broken_spec_is_told_as_written_down(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["complete", path.name])
    output = capsys.readouterr()

    answer = path.with_suffix(".err")
    if REFRESH:
        answer.write_text(output.err)
    assert output.err == answer.read_text()
    assert (code, output.out) == (ExitCode.INVALID, "")


@each_spec
def test_a_broken_spec_is_told_as_data_with_the_same_problems(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["complete", path.name])
    text = capsys.readouterr().err

    assert run(["complete", path.name, "-o", "json"]) == ExitCode.INVALID

    document = json.loads(capsys.readouterr().err)
    assert text.startswith(f"error: {document['error']}\n")
    for problem in document["problems"]:
        place = " ".join(part for part in (problem["where"], problem["path"]) if part)
        assert f"\n  {place}: {problem['message']}\n" in text


@each_spec
def test_every_problem_names_its_file_and_line_in_the_order_of_the_file(path: Path) -> None:
    first, *rest = path.with_suffix(".err").read_text().splitlines()
    problems = [line for line in rest if not line.startswith("    hint: ")]
    places = [PLACE.match(line) for line in problems]

    assert first == f"error: {len(problems)} problem{'s' if len(problems) > 1 else ''} in the spec"
    assert {found["file"] for found in places if found} == {path.name}
    lines = [int(found["line"]) for found in places if found]
    assert len(lines) == len(problems)
    assert lines == sorted(lines)
    assert max(lines) <= len(path.read_text().splitlines())


def test_there_are_many_and_none_ends_in_a_traceback() -> None:
    assert len(SPECS) >= 40
    answers = sorted(BAD.glob("*.err"))
    assert [each.stem for each in answers] == [each.stem for each in SPECS]
    for each in answers:
        text = each.read_text()
        assert "Traceback" not in text
        assert "a bug in protokube" not in text


def test_every_broken_spec_says_in_its_first_line_what_is_wrong_with_it() -> None:
    assert [each.name for each in SPECS if not each.read_text().startswith("# ")] == []


def test_a_flag_of_a_complete_configuration_edited_by_hand_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text((BAD.parent.parent.parent / "examples" / "one-master.yaml").read_text())
    assert run(["complete", "spec.yaml"]) == ExitCode.OK
    whole = capsys.readouterr().out
    assert whole.count("      secure-port: 443\n") == 1
    (tmp_path / "whole.yaml").write_text(whole)
    assert run(["complete", "whole.yaml"]) == ExitCode.OK
    assert capsys.readouterr().out == whole

    (tmp_path / "edited.yaml").write_text(whole.replace("      secure-port: 443\n", "      secure-port: 6443\n"))
    assert run(["complete", "edited.yaml"]) == ExitCode.INVALID

    line = whole[: whole.index("      secure-port: 443\n")].count("\n") + 1
    assert capsys.readouterr().err.splitlines() == [
        "error: 1 problem in the spec",
        f"  edited.yaml:{line} rendered.kubeAPIServer.flags.secure-port: is 6443, but the fields give 443",
        "    hint: change the field it comes from, or its component's `extraFlags`; or delete `rendered`",
    ]
