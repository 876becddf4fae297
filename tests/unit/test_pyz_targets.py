"""What the single-file build asks pip for: the lock as the target sees it, whichever Python builds."""

from __future__ import annotations

import re

import pytest
import pyz

LOCK = """always==1 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
old==2 ; python_full_version < '3.13' \\
    --hash=sha256:cc
arm==3 ; platform_machine == 'aarch64' \\
    --hash=sha256:dd
windows==4 ; sys_platform == 'win32' \\
    --hash=sha256:ee
"""


@pytest.mark.parametrize(
    ("python", "kind", "names"),
    [
        ("3.11", "x86_64-glibc", ["always", "old"]),
        ("3.13", "x86_64-musl", ["always"]),
        ("3.12", "aarch64-glibc", ["always", "old", "arm"]),
        ("3.14", "aarch64-musl", ["always", "arm"]),
    ],
)
def test_markers_are_those_of_the_target_and_not_of_the_python_that_builds(
    python: str, kind: str, names: list[str]
) -> None:
    wanted = pyz.requirements(LOCK, pyz.Target(python, kind))

    assert re.findall(r"^(\w+)==", wanted, re.MULTILINE) == names
    assert ";" not in wanted
    assert wanted.startswith("always==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n")


def test_a_target_is_what_pip_calls_the_machine() -> None:
    assert pyz.Target("3.11", "aarch64-musl").platforms == ["musllinux_1_1_aarch64", "musllinux_1_2_aarch64"]
    assert str(pyz.Target("3.11", "aarch64-musl")) == "Python 3.11 on aarch64-musl"


@pytest.mark.parametrize("kind", pyz.KINDS)
@pytest.mark.parametrize("python", pyz.PYTHONS)
def test_of_our_lock_every_target_gets_all_that_linux_needs(python: str, kind: str) -> None:
    wanted = pyz.requirements(pyz.LOCK.read_text(), pyz.Target(python, kind))

    names = set(re.findall(r"^([\w.-]+)==", wanted, re.MULTILINE))
    assert {"cryptography", "cffi", "msgspec", "pyyaml"} <= names
