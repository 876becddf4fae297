"""Which words mean a file, and which tool of the machine is asked for an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.images.contents import ImageProblem
from protokube.images.exports import TOOLS, export, is_file

HAS_IT = """#!/bin/sh
echo "$0 $*" > "$TOLD"
for word; do case $word in */out.tar) echo it > "$word";; esac; done
"""
HAS_IT_NOT = "#!/bin/sh\necho 'no such image:' >&2\necho \"${0##*/} looked\" >&2\nexit 1\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any of them, until a test puts one there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("sh", "echo"):
        (folder / program).symlink_to(f"/bin/{program}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    return folder


def install(folder: Path, text: str, *names: str) -> None:
    for name in names:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


@pytest.mark.parametrize("word", ["/web", "./web", "../web", "~/web", "web.tar", "web.tar.gz", "web.tgz", "there"])
def test_what_is_there_or_looks_like_a_path_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    assert is_file(word)


@pytest.mark.parametrize("word", ["web", "web:1", "me/web:1", "quay.io/me/web", "web.tar:1", "folder", "x" * 300])
def test_anything_else_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert not is_file(word)


@pytest.mark.parametrize("tool", list(TOOLS))
def test_the_first_tool_that_has_the_image_exports_it(tools: Path, tmp_path: Path, tool: str) -> None:
    earlier = list(TOOLS)[: list(TOOLS).index(tool)]
    install(tools, HAS_IT_NOT, *earlier)
    install(tools, HAS_IT, *[each for each in TOOLS if each not in earlier])

    assert export("web", "amd64", tmp_path / "out.tar") == tool

    words = (tmp_path / "told").read_text().split()
    assert (tmp_path / "out.tar").read_text() == "it\n"
    assert words[0] == str(tools / tool)
    assert words[-1] == ("docker.io/library/web:latest" if tool == "ctr" else "web")


def test_if_none_has_it_the_error_says_what_each_said(tools: Path, tmp_path: Path) -> None:
    install(tools, HAS_IT_NOT, "docker", "ctr")
    with pytest.raises(ImageProblem) as wrong:
        export("web", "amd64", tmp_path / "out.tar")
    assert str(wrong.value) == (
        "no such file, and no tool of this machine has that image: docker says: no such image: docker looked; "
        "podman is not installed; nerdctl is not installed; ctr says: no such image: ctr looked"
    )


def test_what_can_be_neither_a_file_nor_an_image_is_not_asked_for(tools: Path, tmp_path: Path) -> None:
    install(tools, HAS_IT, "docker")
    with pytest.raises(ImageProblem, match="neither a file nor the name of an image"):
        export("--all", "amd64", tmp_path / "out.tar")
    assert not (tmp_path / "told").exists()
