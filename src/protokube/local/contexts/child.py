"""Do something with files in a child process that has one person's rights and no others.

Root must not touch files in a user's folder: with a symbolic link there, that user would choose what root reads or
replaces. A child is also what can be given up, if a home folder on a network hangs. It is a fork without exec: the user
may not be able to read our code. Its reply is JSON, so that root does not trust it with more than values.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.local.contexts.person import Person

SECONDS = 15.0
BLOCKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A Ctrl-C reaches the child, too; it would leave its lock behind."""


def as_person(person: Person, work: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The result of `work`, which JSON can hold. Raises Refused as `work` did; TryLater if there is no reply."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(person, work, writing)
    os.close(writing)
    end = time.monotonic() + seconds
    try:
        reply = _decoded(_read(reading, end))
        late = time.monotonic() >= end
    finally:  # also after a Ctrl-C: the child has work to complete, and a lock to remove
        _end(pid, end)
        os.close(reading)
    if "error" in reply:
        raise Refused(str(reply["error"]), saw=str(reply.get("saw", "")), hint=str(reply.get("hint", "")))
    if "done" not in reply:
        saw = f"no reply within {seconds:g} s" if late else "the process that does it ended without a reply"
        raise TryLater("your kubeconfig could not be read or written", saw=saw)
    return reply["done"]


def _read(handle: int, end: float) -> bytes:
    """Everything until the child closes the pipe; nothing if that is too late."""
    data = b""
    while (left := end - time.monotonic()) > 0:
        if not select.select([handle], [], [], left)[0]:
            break
        more = os.read(handle, 1 << 16)
        if not more:
            return data
        data += more
    return b""


def _decoded(data: bytes) -> dict[str, Any]:
    """Empty for a reply that is missing or incomplete: the child was killed."""
    try:
        reply: Any = json.loads(data or b"{}")
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}


def _end(pid: int, end: float) -> None:
    """Wait for the child to exit, and kill it if it is late. It cannot be waited for if it hangs in the kernel."""
    for killed in (False, True):
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                break
            time.sleep(0.002)
        else:
            return
        if not killed:
            os.kill(pid, signal.SIGKILL)
            end = time.monotonic() + 1.0


def _child(person: Person, work: Callable[[], Any], writing: int) -> NoReturn:
    reply: dict[str, Any] = {}
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
        become(person)
        reply = {"done": work()}
    except ProtokubeError as error:
        reply = {"error": error.message, "saw": error.saw, "hint": error.hint}
    except OSError as error:
        reply = {"error": f"cannot use {error.filename or 'your kubeconfig'}", "saw": error.strerror or str(error)}
    finally:
        _exit_with(reply, writing)


def _exit_with(reply: dict[str, Any], writing: int) -> NoReturn:
    try:
        data = json.dumps(reply).encode()
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def become(person: Person) -> None:
    """Give up root's rights for good; nothing to do for root itself, and for a user who has only their own."""
    os.umask(0o077)
    if os.geteuid() != 0 or person.uid == 0:
        return
    os.setgroups(list(person.groups))
    os.setresgid(person.gid, person.gid, person.gid)
    os.setresuid(person.uid, person.uid, person.uid)
    if os.getresuid() != (person.uid,) * 3 or os.getresgid() != (person.gid,) * 3:
        raise Refused(f"cannot act as user {person.name}")
