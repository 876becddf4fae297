"""Which Kubernetes is found: the user's folder, then the cache, and never something half done."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.mirror import a_folder
from protokube.binaries.kubernetes import CONTROL_PLANE, KUBERNETES, PROGRAMS, find
from protokube.binaries.product import COMPLETE, newest_first
from protokube.errors import InvalidRequest, Refused


def kept(cache: Path, name: str) -> Path:
    folder = a_folder(cache / "kubernetes" / name, name)
    (folder / COMPLETE).touch()
    return folder


def test_an_empty_machine_has_none(tmp_path: Path) -> None:
    assert find(None, tmp_path / "nothing") is None
    assert find("1.34.1", tmp_path) is None


def test_the_version_asked_for_is_found_in_the_cache(tmp_path: Path) -> None:
    kept(tmp_path, "1.34.1")
    folder = kept(tmp_path, "1.33.0")

    found = find("v1.33.0", tmp_path)

    assert found
    assert (found.version, found.folder) == ("1.33.0", folder)
    assert found.programs == {name: folder / name for name in PROGRAMS}
    assert find("1.32.0", tmp_path) is None


def test_without_a_version_the_newest_is_found(tmp_path: Path) -> None:
    for each in ("1.9.11", "1.34.2", "1.34.10", "1.34.11-rc.1"):
        kept(tmp_path, each)
    (tmp_path / "kubernetes" / "1.35.0").mkdir()

    found = find(None, tmp_path)

    assert found
    assert found.version == "1.34.11-rc.1"
    assert KUBERNETES.complete_versions(tmp_path) == ["1.34.11-rc.1", "1.34.10", "1.34.2", "1.9.11"]


def test_a_folder_without_its_mark_is_not_found(tmp_path: Path) -> None:
    (kept(tmp_path, "1.34.1") / COMPLETE).unlink()

    assert find("1.34.1", tmp_path) is None
    assert find(None, tmp_path) is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_folder_that_lost_a_program_is_not_found_and_the_next_is(tmp_path: Path, name: str) -> None:
    (kept(tmp_path, "1.34.1") / name).unlink()
    kept(tmp_path, "1.33.0")

    assert find("1.34.1", tmp_path) is None
    found = find(None, tmp_path)
    assert found
    assert found.version == "1.33.0"


@pytest.mark.parametrize("name", CONTROL_PLANE)
def test_a_folder_named_by_the_user_that_lacks_a_program_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    own = a_folder(tmp_path / "own")
    (own / name).chmod(0o644)
    monkeypatch.setenv(KUBERNETES.chosen, str(own))

    with pytest.raises(Refused, match=f"there is no {name} in {own}"):
        find(None, tmp_path)


# --- versions


@pytest.mark.parametrize("text", ["1.34", "v1.34", "latest", "1.34.1/../..", "1.34.x", "", "1.34.1\n", "../1.34.1"])
def test_what_is_no_version_is_told_so_before_anything_is_touched(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a version of Kubernetes"):
        find(text, tmp_path)


def test_a_series_is_no_version_and_how_to_name_one_is_told() -> None:
    with pytest.raises(InvalidRequest) as wrong:
        KUBERNETES.plain_version("1.34")
    assert "1.34.0" in wrong.value.hint


numbers = st.integers(min_value=0, max_value=9999)


@given(st.lists(st.tuples(numbers, numbers, numbers), unique=True))
def test_newer_means_greater_number_by_number(versions: list[tuple[int, int, int]]) -> None:
    ordered = newest_first(".".join(map(str, each)) for each in versions)

    assert ordered == [".".join(map(str, each)) for each in sorted(versions, reverse=True)]


def test_what_came_before_a_release_is_older_than_it() -> None:
    assert newest_first(["1.35.0-alpha.2", "1.35.0", "1.35.0-rc.10", "1.35.0-rc.9", "1.34.9"]) == [
        "1.35.0",
        "1.35.0-rc.10",
        "1.35.0-rc.9",
        "1.35.0-alpha.2",
        "1.34.9",
    ]
