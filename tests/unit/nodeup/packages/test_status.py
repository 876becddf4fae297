from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.nodeup.packages.status import Package, damaged, interrupted, read

STATES = (
    "not-installed",
    "config-files",
    "half-installed",
    "unpacked",
    "half-configured",
    "triggers-awaited",
    "installed",
)


def stanza(name: str, status: str = "install ok installed", version: str = "1.0", architecture: str = "amd64") -> str:
    lines = [f"Package: {name}", f"Status: {status}", "Maintainer: Nobody", f"Architecture: {architecture}"]
    return "\n".join([*lines, f"Version: {version}", "Description: a thing", " Version: 9 in its text", ""])


def test_a_package_has_the_version_and_state_of_its_stanza() -> None:
    text = "\n".join(
        [stanza("one"), stanza("two", "hold ok installed", "2:1.0-1"), stanza("three", "deinstall ok config-files")]
    )

    assert read([text], "x86_64") == {
        "one": Package(name="one", version="1.0", state="installed"),
        "two": Package(name="two", version="2:1.0-1", state="installed", held=True),
        "three": Package(name="three", version="1.0", state="config-files"),
    }


def test_later_entries_of_the_journal_replace_those_of_the_database() -> None:
    journal = [stanza("one", "install reinstreq half-installed"), stanza("one", "install ok unpacked", "1.1")]

    assert read([stanza("one"), *journal], "x86_64")["one"] == Package(name="one", version="1.1", state="unpacked")


def test_the_same_package_of_another_architecture_is_another_one() -> None:
    text = "\n".join([stanza("libc6", version="2.36"), stanza("libc6", version="2.31", architecture="i386")])

    assert read([text], "x86_64")["libc6"].version == "2.36"
    assert read([stanza("all", architecture="all")], "aarch64")["all"].state == "installed"
    assert read([stanza("one", architecture="arm64")], "aarch64")["one"].state == "installed"


@pytest.mark.parametrize(
    "garbage", ["", "\n\n\n", "Package:\n", "no stanza", "Status: install ok installed\n\n\n", "\0\0"]
)
def test_garbage_has_no_packages(garbage: str) -> None:
    assert read([garbage], "x86_64") == {}


def test_what_dpkg_left_in_the_middle_is_told_from_what_waits_for_others() -> None:
    packages = [Package(name=state, state=state, version="1") for state in STATES]
    packages.append(Package(name="bad", state="installed", version="1", damaged=True))

    assert interrupted(packages) == ("bad", "half-configured", "half-installed", "unpacked")
    assert damaged(packages) == ("bad",)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    read([text, text], "x86_64")
