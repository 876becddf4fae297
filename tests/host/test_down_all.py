"""`protokube down --all`: one cluster that stays is no reason to keep the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.command import process
from protokube.cli.down import together
from protokube.errors import Refused, TryLater
from protokube.local.base.paths import Paths


def clusters(state: Path, *names: str, broken: tuple[str, ...] = ()) -> dict[str, Paths]:
    """State folders of clouds that never ran; where one is broken, nobody can tell whether its daemon runs."""
    made = {name: Paths.at(state / name) for name in names}
    for name, paths in made.items():
        paths.create()
        if name in broken:
            paths.lock_file.mkdir()
    return made


def test_the_others_go_also_if_the_first_one_stays(tmp_path: Path) -> None:
    made = clusters(tmp_path, "first", "second", "third", broken=("first",))

    said = process("down", "--all", "--yes", env={"PROTOKUBE_STATE": str(tmp_path)})

    assert said.code != 0
    assert {name for name, paths in made.items() if paths.root.exists()} == {"first"}
    assert "second: removed" in said.out
    assert "third: removed" in said.out
    assert "first" not in said.out
    assert "first/daemon.lock" in said.err


def test_all_that_stay_are_told_with_their_reasons_and_what_went_is_still_data(tmp_path: Path) -> None:
    clusters(tmp_path, "first", "second", "third", broken=("first", "third"))

    said = process("down", "--all", "--yes", "-o", "json", env={"PROTOKUBE_STATE": str(tmp_path)})

    assert said.code == 4
    assert list(json.loads(said.out)) == ["second"]
    told = json.loads(said.err)
    assert told["error"] == "2 clusters are still there: first, third"
    assert "first/daemon.lock" in told["saw"]
    assert "third/daemon.lock" in told["saw"]


@pytest.mark.parametrize(
    ("other", "kind"),
    [(TryLater("it stays", saw="a disk"), TryLater), (OSError("no"), Refused), (Refused("no"), Refused)],
)
def test_asking_again_is_the_advice_only_if_it_may_help_with_each(other: Exception, kind: type[Exception]) -> None:
    later = TryLater("something of one is still there", saw="/dev/loop7")

    error = together({"one": later, "two": other})

    assert type(error) is kind
    assert "one: something of one is still there: /dev/loop7; two: " in str(error)
    assert together({"one": later}) is later
