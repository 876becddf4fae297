"""The kubelet's files are made from its configuration, and its flags are read back from them as they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.launch.files import KUBELET_ENV, flags_in, kubelet_files, version_in
from protokube.launch.machine import KubeletConfig
from protokube.manifests.component import Flags, Scalar, words

PRINTABLE = st.characters(exclude_categories=("C", "Zl", "Zp"))
VALUES = st.text(PRINTABLE) | st.integers() | st.booleans()
FLAGS = st.dictionaries(st.from_regex("[a-z][a-z-]{0,20}", fullmatch=True), VALUES | st.lists(VALUES, max_size=3))


def environment(**flags: Scalar) -> str:
    return kubelet_files(KubeletConfig(flags=flags, files={}))[KUBELET_ENV]


def test_its_files_are_those_of_the_configuration_and_the_environment_of_its_unit() -> None:
    files = kubelet_files(KubeletConfig(flags={"v": 2, "config": "/etc/k.yaml"}, files={"/etc/k.yaml": "kind: K\n"}))
    assert files == {"/etc/k.yaml": "kind: K\n", "/etc/default/kubelet": "KUBELET_FLAGS='--config=/etc/k.yaml --v=2'\n"}


def test_a_kubelet_without_flags_has_an_empty_variable() -> None:
    assert environment() == "KUBELET_FLAGS=''\n"
    assert flags_in(environment()) == []


def test_a_file_that_sets_no_flags_has_none_and_the_last_assignment_counts() -> None:
    assert flags_in("") == []
    assert flags_in("OTHER='--v=2'\n") == []
    assert flags_in("KUBELET_FLAGS=--v=2\nKUBELET_FLAGS='--v=3 --x=y'\n") == ["--v=3", "--x=y"]


def test_another_version_of_the_kubelet_is_a_changed_file() -> None:
    texts = [kubelet_files(KubeletConfig(flags={"v": 2}, files={}, version=each))[KUBELET_ENV] for each in ("1.2", "")]

    assert [version_in(each) for each in texts] == ["1.2", ""]
    assert [flags_in(each) for each in texts] == [["--v=2"]] * 2


@given(FLAGS)
def test_flags_are_read_back_as_they_were_written(flags: Flags) -> None:
    text = kubelet_files(KubeletConfig(flags=flags, files={}))[KUBELET_ENV]
    assert text.count("\n") == 1
    assert flags_in(text) == words(flags)
