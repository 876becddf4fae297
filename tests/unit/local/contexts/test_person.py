"""Whose kubeconfig is meant, with and without sudo, and which files it has."""

from __future__ import annotations

import pytest

from protokube.errors import Refused
from protokube.local.contexts.person import Person, files_of, who_typed

ROOT = Person(uid=0, gid=0, groups=(0,), home="/root", name="root")
JANE = Person(uid=1000, gid=1000, groups=(1000, 27), home="/home/jane", name="jane")
BY_SUDO = {"SUDO_UID": "1000", "SUDO_USER": "jane", "HOME": "/root", "SUDO_COMMAND": "/usr/bin/protokube up"}


def lookup(uid: int) -> Person | None:
    return {0: ROOT, 1000: JANE}.get(uid)


def test_a_user_without_sudo_is_meant_themselves_and_home_is_where_kubectl_looks() -> None:
    person = who_typed({"HOME": "/elsewhere"}, 1000, lookup)

    assert (person.uid, person.home) == (1000, "/elsewhere")
    assert who_typed({}, 1000, lookup) == JANE


@pytest.mark.parametrize(
    "command",
    ["/usr/bin/protokube up", "/usr/bin/make up", "/bin/bash -c protokube\\ up", "/bin/sh script.sh", ""],
)
def test_under_sudo_the_user_who_typed_it_is_meant(command: str) -> None:
    assert who_typed({**BY_SUDO, "SUDO_COMMAND": command}, 0, lookup) == JANE


@pytest.mark.parametrize("command", ["/bin/bash", "/usr/bin/su", "/usr/bin/su -", "/bin/zsh -l", "/usr/bin/fish"])
def test_in_a_root_shell_root_is_meant(command: str) -> None:
    assert who_typed({**BY_SUDO, "SUDO_COMMAND": command}, 0, lookup) == ROOT


def test_root_without_sudo_or_by_its_own_sudo_is_root() -> None:
    assert who_typed({"HOME": "/root"}, 0, lookup) == ROOT
    assert who_typed({**BY_SUDO, "SUDO_UID": "0"}, 0, lookup) == ROOT


def test_a_user_who_is_not_root_cannot_name_another_one() -> None:
    assert who_typed({**BY_SUDO, "SUDO_UID": "0", "HOME": "/home/jane"}, 1000, lookup) == JANE


@pytest.mark.parametrize("uid", ["1234", "jane", "-1", "", " 1000", "1000; x", "9" * 40])
def test_a_user_whom_nobody_knows_is_refused(uid: str) -> None:
    with pytest.raises(Refused, match="the user who typed sudo is not known"):
        who_typed({**BY_SUDO, "SUDO_UID": uid}, 0, lookup)


@pytest.mark.parametrize(
    ("variable", "files"),
    [
        (None, ["/home/jane/.kube/config"]),
        ("", ["/home/jane/.kube/config"]),
        ("/a", ["/a"]),
        ("/a:/b:/a", ["/a", "/b"]),
        (":/a::/b:", ["/a", "/b"]),
        ("a:./b", ["/here/a", "/here/./b"]),
        ("~/a", ["/here/~/a"]),
    ],
)
def test_the_files_are_those_of_kubectl_in_its_order(variable: str | None, files: list[str]) -> None:
    environ = {} if variable is None else {"KUBECONFIG": variable}

    assert list(files_of(JANE, environ, "/here")) == files


def test_a_variable_that_names_no_file_is_refused_as_is_a_user_without_a_home() -> None:
    with pytest.raises(Refused, match="KUBECONFIG names no file"):
        files_of(JANE, {"KUBECONFIG": "::"}, "/here")
    with pytest.raises(Refused, match="has no home folder"):
        files_of(Person(uid=7, gid=7, groups=(), home="", name="x"), {}, "/here")
