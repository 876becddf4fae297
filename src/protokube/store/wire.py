"""HTTP statuses and aiohttp's exceptions, as kinds of fault; shared by every store that speaks HTTP.

aiohttp tells apart what was never sent from what may have arrived, and that difference must survive.
"""

from __future__ import annotations

from protokube.store.faults import Kind


def kind_of_status(status: int) -> Kind:
    """What a refusing status means. 429 is a promise that nothing was done; a 5xx promises nothing."""
    if status in (401, 403, 407):
        return Kind.DENIED
    if status in (408, 429):
        return Kind.BUSY
    return Kind.BROKEN if status >= 500 else Kind.REJECTED


def kind_of_error(error: BaseException) -> Kind:
    """What an exception of aiohttp, or a time limit, means. The order matters: the classes nest."""
    import aiohttp

    error = unwrapped(error)
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
        return Kind.UNTRUSTED
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Kind.UNREACHED
    if isinstance(error, TimeoutError):
        return Kind.SILENT
    if isinstance(error, aiohttp.ClientConnectorError):
        return Kind.AWAY
    return Kind.REJECTED if isinstance(error, aiohttp.InvalidURL) else Kind.BROKEN


def unwrapped(error: BaseException) -> BaseException:
    """fsspec hides every time limit behind one of its own; only the one below says what had been sent."""
    from fsspec.exceptions import FSTimeoutError

    return error.__cause__ if isinstance(error, FSTimeoutError) and error.__cause__ is not None else error


def words(error: BaseException) -> str:
    """An exception in one line; some have nothing to say but their class."""
    error = unwrapped(error)
    return " ".join(str(error).split())[:300] or type(error).__name__
