"""`protokube get kubernetes`: the command as a user calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Call, process
from fakes.mirror import VERSION, Mirror, a_folder, dead_url, serving
from protokube.binaries.kubernetes import PROGRAMS
from protokube.errors import ExitCode

SHELL = "_PROTOKUBE_COMPLETE"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROTOKUBE_KUBERNETES_BIN", "PROTOKUBE_KUBERNETES_MIRROR", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving(Mirror()) as running:
        yield running


def offered(*words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    env = {SHELL: "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return [line.partition(",")[2] for line in process(env=env).out.splitlines() if line]


def test_a_version_is_downloaded_and_told_where_it_is(call: Call, here: Path, mirror: Mirror) -> None:
    answer = call("get", "kubernetes", VERSION, "--cache", "cache", "--mirror", mirror.url)

    assert (answer.code, answer.out) == (ExitCode.OK, f"Kubernetes {VERSION} is in cache/kubernetes/{VERSION}\n")
    assert [line.split()[1] for line in answer.err.splitlines() if "…" not in line] == list(PROGRAMS)


def test_what_is_there_already_is_told_without_a_word_on_stderr(call: Call, here: Path, mirror: Mirror) -> None:
    call("get", "kubernetes", VERSION, "--cache", "cache", "--mirror", mirror.url)
    again = call("get", "kubernetes", "--cache", "cache")

    assert (again.code, again.err) == (ExitCode.OK, "")
    assert again.out == f"Kubernetes {VERSION} is in cache/kubernetes/{VERSION}\n"


def test_as_data_every_program_has_its_path(call: Call, here: Path, mirror: Mirror) -> None:
    answer = call("get", "kubernetes", VERSION, "--cache", "cache", "--mirror", mirror.url, "-o", "json")

    folder = f"cache/kubernetes/{VERSION}"
    programs = {name: f"{folder}/{name}" for name in PROGRAMS}
    assert json.loads(answer.out) == {"version": VERSION, "folder": folder, "programs": programs}


def test_mirrors_of_the_environment_are_asked_in_turn(
    call: Call, here: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTOKUBE_KUBERNETES_MIRROR", f"{dead_url()} {mirror.url}")

    assert call("get", "kubernetes", VERSION, "--cache", "cache").code == ExitCode.OK


def test_an_offline_folder_is_taken_although_the_environment_names_a_mirror(
    call: Call, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTOKUBE_KUBERNETES_MIRROR", dead_url())
    a_folder(here / "usb")

    assert call("get", "kubernetes", VERSION, "--cache", "cache", "--from", "usb").code == ExitCode.OK


def test_the_folder_of_the_environment_is_used_as_it_is(
    call: Call, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = a_folder(here / "own")
    monkeypatch.setenv("PROTOKUBE_KUBERNETES_BIN", str(own))

    assert call("get", "kubernetes", VERSION, "--cache", "cache").out == f"Kubernetes {VERSION} is in {own}\n"


def test_no_network_is_told_with_the_other_ways_and_may_be_tried_later(call: Call, here: Path) -> None:
    answer = call("get", "kubernetes", VERSION, "--cache", "cache", "--mirror", dead_url())

    assert (answer.code, answer.out) == (ExitCode.TRY_LATER, "")
    assert f"error: cannot download kube-apiserver {VERSION}\n" in answer.err
    for way in ("--from", "--mirror", "PROTOKUBE_KUBERNETES_BIN", "--build"):
        assert way in answer.err


def test_an_error_as_data_says_the_same(call: Call, here: Path) -> None:
    with serving(Mirror(files={"/stable-1.34.txt": b"v1.34.0"})) as poor:
        answer = process("get", "kubernetes", VERSION, "--cache", "c", "--mirror", poor.url, "-o", "json", cwd=here)

    assert answer.code == ExitCode.INVALID
    error = json.loads(answer.err[answer.err.index("{") :])
    assert error["hint"] == "did you mean 1.34.0, the newest of 1.34?"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1.34",), "'1.34' is not a version of Kubernetes"),
        ((VERSION, "--from", "nothing"), "Directory 'nothing' does not exist."),
        ((VERSION, "--from", ".", "--build"), "--from, --mirror and --build exclude each other"),
        ((VERSION, "--from", "."), "there is no kube-apiserver"),
        ((VERSION, "--mirror", "usb"), "'usb' is not a URL to download from"),
        (("--bild",), "No such option '--bild'"),
        ((), "there is no Kubernetes in cache yet"),
    ],
    ids=" ".join,
)
def test_a_call_that_cannot_work_is_the_users_to_change(
    call: Call, here: Path, arguments: tuple[str, ...], message: str
) -> None:
    answer = call("get", "kubernetes", *arguments, "--cache", "cache")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert message in answer.err


def test_help_shows_how_it_is_called_and_the_help_of_get_leads_there(call: Call) -> None:
    assert call("get", "kubernetes", "-h").out.startswith("Usage: protokube get kubernetes [OPTIONS] [VERSION]\n")
    assert "    protokube get kubernetes 1.34.1 --from " in call("get", "kubernetes", "--help").out
    assert "`protokube get kubernetes --help`" in call("get", "--help").out


def test_the_shell_offers_it_and_its_options() -> None:
    assert offered("protokube", "get", "kub") == ["kubernetes"]
    assert offered("protokube", "get", "kubernetes", "--mi") == ["--mirror"]
    assert offered("protokube", "get", "kubernetes", "-o", "j") == ["json"]


def test_the_shell_offers_the_versions_that_are_here(here: Path, mirror: Mirror, call: Call) -> None:
    call("get", "kubernetes", VERSION, "--cache", str(here), "--mirror", mirror.url)

    assert offered("protokube", "get", "kubernetes", "--cache", str(here), "1.3") == [VERSION]


def test_a_cluster_may_still_have_that_name(call: Call, tmp_path: Path) -> None:
    answer = call("get", "--store", str(tmp_path), "kubernetes")

    assert answer.code == ExitCode.REFUSED
    assert "kubernetes/cluster.spec is not in" in answer.err
