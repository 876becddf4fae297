"""A POSIX shell reads the environment file of the kubelet's unit as `flags_in` does."""

from __future__ import annotations

import subprocess

import pytest

from protokube.launch.files import KUBELET_ENV, flags_in, kubelet_files
from protokube.launch.machine import KubeletConfig


@pytest.mark.parametrize(
    "value", ["plain", "two words", "it's", 'say "hi"', "$HOME `id`", "back\\slash", "*", "", "ä#b"]
)
def test_a_posix_shell_reads_the_same_flags(value: str) -> None:
    text = kubelet_files(KubeletConfig(flags={"first": value, "second": [value, 1]}, files={}))[KUBELET_ENV]
    script = f'{text}eval "set -- $KUBELET_FLAGS"\nprintf "%s\\n" "$@"\n'
    shell = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert shell.stdout.splitlines() == flags_in(text) == [f"--first={value}", f"--second={value}", "--second=1"]
