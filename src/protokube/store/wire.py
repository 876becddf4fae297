"""Map HTTP statuses and aiohttp's exceptions to kinds of faults; shared by every store over HTTP.

aiohttp distinguishes requests that were never sent from those that may have arrived; the kinds keep that distinction.
"""

from __future__ import annotations

from protokube.store.faults import Kind


def kind_of_status(status: int) -> Kind:
    """The kind of an error status. 429 guarantees that nothing was done; a 5xx guarantees nothing."""
    if status in (401, 403, 407):
        return Kind.DENIED
    if status in (408, 429):
        return Kind.BUSY
    return Kind.BROKEN if status >= 500 else Kind.REJECTED


def kind_of_error(error: BaseException) -> Kind:
    """The kind of an exception of aiohttp or a timeout. The order matters: the classes nest."""
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
    """fsspec wraps every timeout in its own; only the cause tells whether something was sent."""
    from fsspec.exceptions import FSTimeoutError

    return error.__cause__ if isinstance(error, FSTimeoutError) and error.__cause__ is not None else error


def words(error: BaseException) -> str:
    """An exception in one line; its class if it has no text."""
    error = unwrapped(error)
    return " ".join(str(error).split())[:300] or type(error).__name__
