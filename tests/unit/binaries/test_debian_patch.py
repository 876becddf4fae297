"""Code that the compiler breaks is replaced by code that fits, whole, or nothing is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.binaries.debian_patch import FITTING, MODULE, PACKAGE, patch, replace_code
from protokube.errors import Refused, TryLater

OLD = {"go_above_17.go": "old", "go_below_17.go": "old", "type_map.go": "old", "BUILD": "old", "LICENSE": "free"}
NEW = {FITTING: "new", "type_map.go": "new", "reflect2_amd64.s": "new", "go.mod": "module other"}


def folder(path: Path, files: dict[str, str]) -> Path:
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def content(path: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in path.iterdir()}


class Apt:
    """Brings the package as often as it is told to; the first times it has nothing."""

    def __init__(self, files: dict[str, str], failures: int = 0) -> None:
        self.files, self.failures, self.asked = files, failures, list[Sequence[str]]()

    def __call__(self, command: Sequence[str], where: Path) -> None:
        self.asked.append(command)
        if "download" in command:
            if self.failures:
                self.failures -= 1
                raise TryLater("apt-get failed", saw="unable to locate package", hint="look into the log")
            (where / f"{PACKAGE}_1_all.deb").touch()
        if command[0] == "dpkg-deb":
            folder(Path(command[3]) / "usr/share/gocode/src" / MODULE, self.files)

    def did(self) -> list[str]:
        return [word for command in self.asked for word in command if word in ("update", "download", "dpkg-deb")]


def carried(source: Path) -> Path:
    return source / "vendor" / MODULE


def test_all_old_code_goes_the_licence_stays_and_only_code_comes(tmp_path: Path) -> None:
    old, new = folder(tmp_path / "old", OLD), folder(tmp_path / "new", NEW)
    folder(old / "tests", {"a.go": "old"})

    replace_code(old, new)

    assert content(old) == {FITTING: "new", "type_map.go": "new", "reflect2_amd64.s": "new", "LICENSE": "free"}
    assert content(new) == NEW


names = st.sampled_from(["a", "b", "c", "LICENSE", "reflect2_test", "go_above_19"]).flatmap(
    lambda stem: st.sampled_from([stem, f"{stem}.go", f"{stem}.s", f"{stem}.md"])
)


@given(st.dictionaries(names, st.just("old")), st.dictionaries(names, st.just("new")))
def test_no_old_code_is_left_whatever_there_was(before: dict[str, str], after: dict[str, str]) -> None:
    with TemporaryDirectory() as root:
        old, new = folder(Path(root) / "old", before), folder(Path(root) / "new", after | {FITTING: "new"})
        replace_code(old, new)
        left = content(old)

    code = {name for name in left if name.endswith((".go", ".s")) and not name.startswith("LICENSE")}
    assert {left[name] for name in code} == {"new"}
    assert code >= {name for name in after if name.endswith((".go", ".s")) and not name.startswith("LICENSE")}
    assert {name for name in before if name.startswith("LICENSE")} <= set(left)


def test_code_that_does_not_fit_either_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    old, new = folder(tmp_path / "old", OLD), folder(tmp_path / "new", {"type_map.go": "1.0.1"})

    with pytest.raises(Refused, match="would be unsafe"):
        replace_code(old, new)
    assert content(old) == OLD


def test_the_package_is_unpacked_and_its_code_taken(tmp_path: Path) -> None:
    folder(carried(tmp_path / "source"), OLD)
    apt = Apt(NEW)

    patch(tmp_path / "source", tmp_path / "work", apt)

    assert content(carried(tmp_path / "source"))[FITTING] == "new"
    assert apt.did() == ["download", "dpkg-deb"]


def test_lists_that_do_not_know_the_package_are_got_anew_beside_those_of_the_machine(tmp_path: Path) -> None:
    folder(carried(tmp_path / "source"), OLD)
    apt = Apt(NEW, failures=1)

    patch(tmp_path / "source", tmp_path / "work", apt)

    assert content(carried(tmp_path / "source"))[FITTING] == "new"
    assert apt.did() == ["download", "update", "download", "dpkg-deb"]
    own = f"--option=Dir::State::lists={tmp_path}/work/"
    assert [any(word.startswith(own) for word in command) for command in apt.asked] == [False, True, True, False]


def test_a_package_that_cannot_be_had_is_told_as_what_it_means(tmp_path: Path) -> None:
    folder(carried(tmp_path / "source"), OLD)

    with pytest.raises(TryLater, match=f"cannot get {PACKAGE}; Kubernetes built without it would be unsafe") as raised:
        patch(tmp_path / "source", tmp_path / "work", Apt(NEW, failures=2))

    assert (raised.value.saw, raised.value.hint) == ("unable to locate package", "look into the log")
    assert content(carried(tmp_path / "source")) == OLD


@pytest.mark.parametrize("files", [None, NEW])
def test_a_source_that_carries_it_no_more_or_newer_is_left_alone(tmp_path: Path, files: dict[str, str] | None) -> None:
    if files is not None:
        folder(carried(tmp_path / "source"), files)
    apt = Apt(NEW)

    patch(tmp_path / "source", tmp_path / "work", apt)

    assert apt.asked == []
    assert files is None or content(carried(tmp_path / "source")) == files
