"""Run a program of the system to its end, and keep what it says."""

from __future__ import annotations

import os

from protokube.host.child.claim import Refusal

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
MOST = 4096


def run(*command: str) -> tuple[int, str]:
    """Its exit status and the end of its output. It inherits our output besides its own, so whoever waits for ours
    to end waits for the program too, even when we are killed before it."""
    output = os.memfd_create("output")
    tie = os.dup(1)
    os.set_inheritable(tie, True)
    try:
        streams = [(os.POSIX_SPAWN_DUP2, output, stream) for stream in (1, 2)]
        try:
            process = os.posix_spawnp(command[0], command, ENVIRONMENT, file_actions=streams)
        except FileNotFoundError as error:
            raise Refusal(f"{command[0]} is needed and not installed: on Debian, e2fsprogs brings it") from error
        _, status = os.waitpid(process, 0)
        size = os.lseek(output, 0, os.SEEK_END)
        said = os.pread(output, MOST, max(0, size - MOST)).decode(errors="replace").strip()
        return os.waitstatus_to_exitcode(status), said
    finally:
        os.close(output)
        os.close(tie)
