"""What the tests of stores over the network share: how long they wait, and what a good error looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from conformance.store.bad_server import BadServer, Manners, Reply
from protokube.errors import ProtokubeError
from protokube.store import Store
from protokube.store.patience import Patience

CALM = Patience(connect=20, read=20, total=60, pauses=(0.01, 0.01))
"""For an answer that has to come."""
HASTY = replace(CALM, read=1.2)
"""For an answer that never comes."""
HASTY_TO_CONNECT = replace(CALM, connect=1.2)
"""For a connection that never comes about."""


class Open(Protocol):
    """From the kind of a store and the URL of its far side."""

    def __call__(self, kind: str, url: str, patience: Patience = CALM) -> Store: ...


Serve = Callable[[Manners | Reply], BadServer]
"""From what a server should do to the server doing it."""


def assert_clear(error: ProtokubeError) -> None:
    """One message of a few short lines, in our words, with a way out; no trace of a traceback."""
    lines = str(error).splitlines()
    assert lines[0].startswith("cannot ")
    assert len(lines) <= 4
    assert all(line.startswith(("  saw: ", "  want:", "  hint:")) for line in lines[1:])
    assert any(line.startswith("  hint:") for line in lines)
    assert "Traceback" not in str(error)
    assert "Error(" not in lines[0]
