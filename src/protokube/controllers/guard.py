"""The outermost frame of every thread of a controller: a bug in one piece of work must not end the thread."""

from __future__ import annotations

import logging
from collections.abc import Callable

from protokube.errors import ProtokubeError

log = logging.getLogger(__name__)


def guarded(what: str, work: Callable[[], None]) -> str:
    """Call `work`; return what went wrong, in words, or an empty string."""
    try:
        work()
    except ProtokubeError as why:
        return str(why)
    except Exception:
        log.exception("%s: unexpected error, please report it", what)
        return "unexpected error, please report it"
    return ""
