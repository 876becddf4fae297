"""One table of exit codes, for `status` and `up` alike."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import protokube
from builders.command import Call
from builders.view import FakeCloud, ShortFolder, a_note, a_view, an_agent, but, cloud_rows, write_state
from protokube.cli.shared.progress import Progress
from protokube.cli.up.waiting import await_ready, for_a_person
from protokube.errors import CODES, ExitCode, ProtokubeError, Refused, TryLater
from protokube.view.cluster import ClusterView

ROOT = Path(__file__).parents[3]
VIEW = a_view()
ASKING = a_view(agents=but(VIEW.agents, 1, person=(a_note("vol-bbbb is not blank", about="main/b", hint="check it"),)))


@pytest.fixture
def state() -> Iterator[Path]:
    with ShortFolder() as folder:
        yield folder


def test_the_documented_table_has_every_code_and_no_other() -> None:
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs/exit-codes.md").read_text(), re.MULTILINE)

    assert [int(each) for each in rows] == sorted(ExitCode)


def test_the_documented_table_of_codes_for_programs_is_the_one_of_the_code() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (.+) \|$", (ROOT / "docs/exit-codes.md").read_text(), re.MULTILINE)

    assert {name: (ExitCode(int(code)), text) for name, code, text in rows} == CODES


def test_every_error_has_a_code_of_the_table_that_goes_with_its_exit_code() -> None:
    def classes(kind: type[ProtokubeError]) -> Iterator[type[ProtokubeError]]:
        yield kind
        for each in kind.__subclasses__():
            yield from classes(each)

    for module in pkgutil.walk_packages(protokube.__path__, "protokube."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for each in classes(ProtokubeError):
        assert CODES[each.code][0] is each.exit_code, each


def test_every_code_that_is_given_to_a_single_error_is_in_the_table() -> None:
    source = ROOT / "src/protokube"
    given = {code for file in source.rglob("*.py") for code in re.findall(r'\bcode="([^"]+)"', file.read_text())}

    assert given <= set(CODES)
    assert {"several-clusters", "no-cluster"} <= given


def test_the_table_is_found_from_the_readme_and_from_the_help_of_status(call: Call) -> None:
    assert "(docs/exit-codes.md)" in (ROOT / "README.md").read_text()
    assert "docs/exit-codes.md" in " ".join(call("status", "--help").out.split())


def awaited(state: Path, view: ClusterView) -> ClusterView:
    paths = write_state(state, view)
    with FakeCloud(paths.admin_socket, cloud_rows(view)):
        return await_ready(Progress(quiet=True), paths, timeout=0.1)


def test_up_ends_with_the_code_for_a_person_if_one_is_needed_when_the_time_is_up(state: Path) -> None:
    with pytest.raises(Refused) as caught:
        awaited(state, ASKING)

    assert caught.value.exit_code is ExitCode.REFUSED
    assert (caught.value.message, caught.value.hint) == ("it needs a person: vol-bbbb is not blank", "check it")


def test_up_ends_with_try_later_if_nobody_has_to_act(state: Path) -> None:
    with pytest.raises(TryLater) as caught:
        awaited(state, VIEW)

    assert caught.value.exit_code is ExitCode.TRY_LATER


def test_a_cluster_that_serves_and_needs_a_person_says_both_at_the_end_of_up() -> None:
    again = an_agent(2, person=(a_note("vol-bbbb is not blank", about="main/b"),))

    assert for_a_person(ASKING).message == "it serves, and needs a person: vol-bbbb is not blank"
    assert for_a_person(a_view(agents=(*ASKING.agents[:2], again))).saw == "vol-bbbb is not blank"
