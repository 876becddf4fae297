"""Run a system program and capture its output."""

from __future__ import annotations

import os

from protokube.host.child.claim import Refusal

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
MOST = 4096


def run(*command: str) -> tuple[int, str]:
    """Its exit status and the end of its output. It also inherits our stdout: the parent waits for the end of that, and
    so for this program too, even if we are killed before it."""
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
        text = os.pread(output, MOST, max(0, size - MOST)).decode(errors="replace").strip()
        return os.waitstatus_to_exitcode(status), text
    finally:
        os.close(output)
        os.close(tie)
