"""Everything that is asked for is judged before anything changes, and all that is wrong comes out at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.errors import ExitCode
from protokube.local.loading.image_store import Kept
from protokube.local.loading.load import BadImages, Found, changes, contradictions, found, machine
from unit.images.archives import packed, saved


def an_archive(folder: Path, content: str, *names: str, architecture: str = "") -> str:
    file = folder / f"{content}.tar"
    file.write_bytes(packed(saved(*names, layer=content.encode(), machine=architecture or machine())))
    return str(file)


def a_find(content: str, *names: str) -> Found:
    return Found(
        argument=content, file=Path(content), tool="", size=1, kept=Kept(content, {name: name for name in names})
    )


def test_good_archives_are_found_with_their_names(tmp_path: Path) -> None:
    arguments = [an_archive(tmp_path, "one", "web:1"), an_archive(tmp_path, "two", "db")]
    with found(arguments, tmp_path) as good:
        names = [list(each.kept.names) for each in good]
    assert names == [["docker.io/library/web:1"], ["docker.io/library/db:latest"]]


def test_what_is_said_twice_is_read_once(tmp_path: Path) -> None:
    archive = an_archive(tmp_path, "one", "web:1")
    with found([archive, archive], tmp_path) as good:
        assert len(good) == 1


def test_everything_wrong_with_all_of_them_comes_out_at_once_and_nothing_is_left(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    arguments = [
        an_archive(tmp_path, "good", "web:1"),
        an_archive(tmp_path, "nameless"),
        an_archive(tmp_path, "foreign", "db:1", architecture="pdp11"),
        an_archive(tmp_path, "again", "web:1"),
        str(tmp_path / "none.tar"),
        str(tmp_path),
    ]
    with pytest.raises(BadImages, match="nothing was loaded: 5 problems") as bad, found(arguments, images):
        pass

    messages = {each.path: each.message for each in bad.value.problems}
    assert list(messages) == [arguments[1], arguments[2], arguments[4], arguments[5], arguments[3]]
    assert "has no name" in messages[arguments[1]]
    assert f"is for linux/pdp11, and this machine is linux/{machine()}" in messages[arguments[2]]
    assert messages[arguments[3]] == f"docker.io/library/web:1 is in {arguments[0]} as well, with other content"
    assert messages[arguments[4]] == "there is no such file"
    assert "not a file: a folder" in messages[arguments[5]]
    assert all(f"  {path}: " in str(bad.value) for path in messages)
    assert bad.value.exit_code == ExitCode.INVALID
    assert list(images.iterdir()) == []


def test_the_same_content_under_two_words_is_no_contradiction() -> None:
    assert contradictions([a_find("1", "web"), a_find("1", "web"), a_find("2", "db")]) == []


def test_what_becomes_of_each_name_is_told() -> None:
    before = [Kept("1", {"web": "web", "db": "db"}), Kept("2", {"db": "db"})]
    result = changes(before, [a_find("1", "web", "db"), a_find("3", "new")])
    assert result == {"web": "already there", "db": "replaced", "new": "loaded"}
