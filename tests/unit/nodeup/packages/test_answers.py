"""Texts of apt 2.6 and dpkg 1.21, as they came."""

from __future__ import annotations

import pytest

from protokube.nodeup.packages.answers import Trouble, not_fetched, read

REMOVES = """Reading package lists...
The following packages will be REMOVED:
  tiny-conf tiny-other
The following NEW packages will be installed:
  tiny-rival
E: Packages need to be removed but remove is disabled.
"""
DOWNGRADES = """The following packages will be DOWNGRADED:
  tiny-conf
0 upgraded, 0 newly installed, 1 downgraded, 0 to remove and 0 not upgraded.
E: Packages were downgraded and -y was used without --allow-downgrades.
"""
SCRIPT = """Setting up tiny-conf (1.0) ...
the script says no
dpkg: error processing package tiny-conf (--configure):
 installed tiny-conf package post-installation script subprocess returned error exit status 3
Errors were encountered while processing:
 tiny-conf
E: Sub-process /usr/bin/dpkg returned an error code (1)
"""
LOCK = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 12 (apt-get)\n"


@pytest.mark.parametrize(
    ("output", "trouble", "names"),
    [
        (REMOVES, Trouble.REMOVES, ("tiny-conf", "tiny-other")),
        (DOWNGRADES, Trouble.DOWNGRADES, ("tiny-conf",)),
        (LOCK, Trouble.LOCKED, ()),
        ("dpkg: error: dpkg frontend lock was locked by another process with pid 9\n", Trouble.LOCKED, ()),
        ("E: Unable to lock directory /var/lib/apt/lists/\n", Trouble.LOCKED, ()),
        ("E: Unable to locate package one\nE: Unable to locate package two\n", Trouble.UNKNOWN, ("one", "two")),
        ("E: Package 'one' has no installation candidate\n", Trouble.UNKNOWN, ("one",)),
        ("E: Version '7' for 'one' was not found\n", Trouble.UNKNOWN, ("one",)),
        ("E: Failed to fetch http://x/y.deb  Connection failed\n", Trouble.DOWNLOAD, ()),
        ("E: dpkg was interrupted, you must manually run 'dpkg --configure -a'\n", Trouble.INTERRUPTED, ()),
        ("E: Write error - write (28: No space left on device)\n", Trouble.FULL, ()),
        ("E: You don't have enough free space in /var/cache/apt/archives/.\n", Trouble.FULL, ()),
        ("E: Type 'dep' is not known on line 1 in source list /x\n", Trouble.SOURCES, ()),
        ("E: Could not open lock file /x - open (30: Read-only file system)\n", Trouble.READ_ONLY, ()),
        ("E: There were unauthenticated packages and -y was used\n", Trouble.UNSIGNED, ()),
        (SCRIPT, Trouble.OTHER, ()),
        ("", Trouble.OTHER, ()),
    ],
)
def test_an_answer_is_known_by_its_text(output: str, trouble: Trouble, names: tuple[str, ...]) -> None:
    answer = read(output)

    assert (answer.trouble, answer.names) == (trouble, names)


def test_a_script_that_failed_is_shown_with_its_reason_in_one_line() -> None:
    assert read(SCRIPT).saw == (
        "dpkg: error processing package tiny-conf (--configure): installed tiny-conf package post-installation script "
        "subprocess returned error exit status 3"
    )


def test_an_output_without_any_known_line_is_shown_by_its_last_lines() -> None:
    assert read("\n".join(f"line {number}" for number in range(20))).saw.endswith("line 18; line 19")


def test_lists_that_could_not_be_fetched_are_named_although_apt_ends_well() -> None:
    output = (
        "Err:1 http://x stable InRelease\nW: Failed to fetch http://x/InRelease  refused\nW: Some index files failed\n"
    )

    assert not_fetched(output) == "Failed to fetch http://x/InRelease refused"
