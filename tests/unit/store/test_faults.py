"""From the exception of a vendor to the message for a user."""

from __future__ import annotations

import errno

import aiohttp
import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from fsspec.exceptions import FSTimeoutError
from gcsfs.retry import HttpError
from google.auth import exceptions as google_exceptions

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.store import Unsure, gs_request, s3_errors, wire
from protokube.store.faults import ERRORS, HINTS, Kind, fault
from protokube.store.file import explain
from protokube.store.gs_request import Answer
from protokube.store.patience import Busy


def a_fault(kind: Kind, *, guarded: bool = False, saw: str = "something") -> ProtokubeError:
    return fault(kind, doing="write dev/config", url="s3://bucket", saw=saw, guarded=guarded)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("guarded", [True, False])
def test_every_fault_says_what_was_tried_where_and_what_to_do(kind: Kind, guarded: bool) -> None:
    error = a_fault(kind, guarded=guarded)

    assert error.message.startswith(f"cannot write dev/config in s3://bucket: {kind.value}")
    assert error.saw == "something"
    assert error.hint


def test_every_kind_has_an_error_and_a_hint() -> None:
    assert set(ERRORS) == set(HINTS) == set(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_only_a_guarded_write_that_may_have_arrived_is_in_doubt(kind: Kind) -> None:
    in_doubt = kind in (Kind.BROKEN, Kind.SILENT)

    assert isinstance(a_fault(kind, guarded=True), Unsure) == in_doubt
    assert not isinstance(a_fault(kind), Unsure)


@pytest.mark.parametrize("kind", Kind)
def test_what_hangs_is_never_asked_again(kind: Kind) -> None:
    assert isinstance(a_fault(kind), Busy) == (kind in (Kind.AWAY, Kind.BUSY, Kind.BROKEN))


def test_what_a_vendor_says_is_shown_without_passwords() -> None:
    assert "hunter2" not in str(a_fault(Kind.AWAY, saw="cannot reach http://me:hunter2@host/"))


def test_a_vendors_hint_comes_before_ours() -> None:
    error = fault(Kind.AWAY, doing="read x", url="s3://b", saw="", hints={Kind.AWAY: "plug it in"})

    assert error.hint == "plug it in"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.REJECTED),
        (401, Kind.DENIED),
        (403, Kind.DENIED),
        (404, Kind.REJECTED),
        (407, Kind.DENIED),
        (408, Kind.BUSY),
        (429, Kind.BUSY),
        (500, Kind.BROKEN),
        (503, Kind.BROKEN),
    ],
)
def test_a_status_says_who_has_to_act(status: int, kind: Kind) -> None:
    assert wire.kind_of_status(status) is kind


def under(outer: Exception, inner: BaseException) -> Exception:
    """The outer exception as it looks after `raise outer from inner`."""
    outer.__cause__ = outer.__context__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aiohttp.ConnectionTimeoutError("connect"), Kind.UNREACHED),
        (aiohttp.SocketTimeoutError("read"), Kind.SILENT),
        (TimeoutError(), Kind.SILENT),
        (FSTimeoutError(), Kind.SILENT),
        (under(FSTimeoutError(), aiohttp.ConnectionTimeoutError("connect")), Kind.UNREACHED),
        (aiohttp.ServerDisconnectedError(), Kind.BROKEN),
        (aiohttp.ClientOSError(errno.ECONNRESET, "reset"), Kind.BROKEN),
        (aiohttp.ClientPayloadError("short"), Kind.BROKEN),
        (aiohttp.InvalidURL("::"), Kind.REJECTED),
    ],
    ids=repr,
)
def test_what_was_never_sent_is_told_from_what_may_have_arrived(error: Exception, kind: Kind) -> None:
    assert wire.kind_of_error(error) is kind


def test_an_exception_without_words_is_shown_by_its_class() -> None:
    assert wire.words(TimeoutError()) == "TimeoutError"
    assert wire.words(under(FSTimeoutError(), aiohttp.SocketTimeoutError("no  bytes\ncame"))) == "no bytes came"
    assert len(wire.words(ValueError("x" * 9999))) == 300


def refusal(code: str, status: int) -> boto.ClientError:
    answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return boto.ClientError(answer, "PutObject")  # type: ignore[arg-type,unused-ignore]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refusal("NoSuchBucket", 404), Kind.NO_BUCKET),
        (refusal("SlowDown", 503), Kind.BUSY),
        (refusal("ConditionalRequestConflict", 409), Kind.BUSY),
        (refusal("InternalError", 500), Kind.BROKEN),
        (refusal("ServiceUnavailable", 503), Kind.BROKEN),
        (refusal("AccessDenied", 403), Kind.DENIED),
        (refusal("ExpiredToken", 400), Kind.DENIED),
        (refusal("InvalidBucketName", 400), Kind.REJECTED),
        (boto.ConnectTimeoutError(endpoint_url="u"), Kind.UNREACHED),
        (boto.ReadTimeoutError(endpoint_url="u"), Kind.SILENT),
        (boto.SSLError(endpoint_url="u", error="e"), Kind.UNTRUSTED),
        (boto.ProxyConnectionError(proxy_url="u", error="e"), Kind.AWAY),
        (boto.ConnectionClosedError(endpoint_url="u"), Kind.BROKEN),
        (under(boto.HTTPClientError(error="e"), FileNotFoundError("ca.pem")), Kind.UNTRUSTED),
        (boto.NoCredentialsError(), Kind.DENIED),
        (boto.ProfileNotFound(profile="p"), Kind.DENIED),
        (boto.ParamValidationError(report="bad bucket"), Kind.REJECTED),
        (ResponseParserError("not XML"), Kind.BROKEN),
        (aiohttp.ClientPayloadError("short"), Kind.BROKEN),
        (ValueError("Invalid endpoint"), Kind.REJECTED),
    ],
    ids=repr,
)
def test_s3s_refusals_are_sorted_by_who_has_to_act(error: Exception, kind: Kind) -> None:
    assert isinstance(error, s3_errors.caught())
    assert s3_errors.kind_of(error) is kind


def test_a_connection_cut_after_the_request_is_not_taken_for_one_that_never_was() -> None:
    """aiobotocore reports both as "could not connect"; a write may have arrived in one of them."""
    cut = under(boto.EndpointConnectionError(endpoint_url="u"), aiohttp.ClientOSError(errno.ECONNRESET, "reset"))

    assert s3_errors.kind_of(cut) is Kind.BROKEN


def google(name: str, *args: str, **settings: bool) -> Exception:
    """One of google.auth's exceptions; their classes have no annotations to call them by."""
    made: Exception = getattr(google_exceptions, name)(*args, **settings)
    return made


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (google("DefaultCredentialsError", "none found"), Kind.DENIED),
        (google("RefreshError", "revoked"), Kind.DENIED),
        (google("TransportError", "token server away"), Kind.AWAY),
        (under(HttpError({"code": 401, "message": "Invalid Credentials"}), google("RefreshError", "no")), Kind.DENIED),
        (under(HttpError({"code": 401}), google("RefreshError", "busy", retryable=True)), Kind.AWAY),
        (aiohttp.ServerDisconnectedError(), Kind.BROKEN),
        (TimeoutError(), Kind.SILENT),
    ],
    ids=repr,
)
def test_googles_refusals_are_sorted_by_who_has_to_act(error: Exception, kind: Kind) -> None:
    assert isinstance(error, gs_request.caught())
    assert gs_request.kind_of(error) is kind


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"code": 403, "message": "no\\n access"}}', "HTTP 403 no access"),
        (b"No such object: b/o", "HTTP 403 No such object: b/o"),
        (b'{"error": "short"}', 'HTTP 403 {"error": "short"}'),
        (b"[1]", "HTTP 403 [1]"),
        (b"\xff", "HTTP 403 \ufffd"),
        (b"", "HTTP 403"),
    ],
)
def test_whatever_google_answers_becomes_one_line(body: bytes, words: str) -> None:
    assert Answer(403, {}, body).words == words


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, Refused),
        (errno.EPERM, Refused),
        (errno.EROFS, Refused),
        (errno.ENAMETOOLONG, Refused),
        (errno.ENOTDIR, Refused),
        (errno.ENOSPC, TryLater),
        (errno.EDQUOT, TryLater),
        (errno.EIO, TryLater),
        (errno.ESTALE, TryLater),
    ],
)
def test_a_fault_of_the_disk_says_who_has_to_act(number: int, kind: type[ProtokubeError]) -> None:
    error = explain(OSError(number, "what the kernel says", "/srv/state/x"), "cannot write x in file:///srv/state")

    assert isinstance(error, kind)
    assert error.saw == "what the kernel says (/srv/state/x)"
    assert error.hint
