"""The programs that hosts with a real kubelet call: scripts that find a program, its plugins and its libraries."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from protokube.images.proxyimage import MULTI, NAMES
from protokube.local.node import hosttools


def test_a_script_runs_the_one_program_under_its_name_with_its_plugins_and_the_libraries_that_are_lacking(
    tmp_path: Path,
) -> None:
    cache = tmp_path / "a cache"
    program = cache / "iptables" / MULTI
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$XTABLES_LIBDIR|$LD_LIBRARY_PATH|$*"\n')
    program.chmod(0o755)
    plugins = cache / "iptables/usr/lib/x86_64-linux-gnu/xtables"
    plugins.mkdir(parents=True)
    library = cache / "libthing1/usr/lib/x86_64-linux-gnu/libthing.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    (cache / ".iptables.libraries").write_text("libthing1\n")

    tools = hosttools.obtain(cache)

    assert sorted(each.name for each in tools.folder.iterdir()) == sorted(NAMES)
    assert tools.shown == (cache / "iptables", cache / "libthing1")
    ran = subprocess.run(
        ["iptables-save", "-t", "two words"],
        env={"PATH": f"{tools.folder}:{os.defpath}"},
        capture_output=True,
        text=True,
    )
    assert ran.stdout == f"{plugins}|{library.parent}|iptables-save -t two words\n", ran.stderr
