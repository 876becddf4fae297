"""Kinds of botocore's exceptions, and hints for users of S3."""

from __future__ import annotations

from collections.abc import Mapping

from protokube.store.faults import Kind
from protokube.store.wire import kind_of_error, kind_of_status

CODES: Mapping[str, Kind] = {
    "NoSuchBucket": Kind.NO_BUCKET,
    "SlowDown": Kind.BUSY,
    "Throttling": Kind.BUSY,
    "RequestLimitExceeded": Kind.BUSY,
    "RequestTimeout": Kind.BUSY,
    "OperationAborted": Kind.BUSY,
    "ConditionalRequestConflict": Kind.BUSY,  # concurrent conditional writes; AWS says to retry
    "ExpiredToken": Kind.DENIED,
    "InvalidToken": Kind.DENIED,
}

HINTS: Mapping[Kind, str] = {
    Kind.AWAY: "check the network, AWS_REGION, and AWS_ENDPOINT_URL if it is set; then run it again",
    Kind.DENIED: "check the credentials with `aws sts get-caller-identity`; the store needs s3:GetObject, "
    "s3:PutObject and s3:ListBucket (without the last, S3 denies access to missing objects too)",
    Kind.NO_BUCKET: "create it with `aws s3 mb`, or correct the store's URL",
    Kind.UNTRUSTED: "point AWS_CA_BUNDLE at the certificate authority that signed it",
    Kind.REJECTED: "correct the bucket's name, AWS_REGION or AWS_ENDPOINT_URL",
}


def caught() -> tuple[type[Exception], ...]:
    """Every exception that a call of S3 may raise. botocore uses ValueError for an invalid endpoint."""
    from aiohttp import ClientError as WireError
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    return (BotoCoreError, ClientError, ResponseParserError, WireError, TimeoutError, ValueError)


def code_of(error: BaseException) -> str:
    """The error code of S3; empty if S3 did not reply."""
    return str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))


def kind_of(error: BaseException) -> Kind:
    """The kind of an exception. The order matters: the classes nest."""
    from aiohttp import ClientError as WireError
    from botocore import exceptions as boto
    from botocore.parsers import ResponseParserError

    if isinstance(error, boto.ClientError):
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
        return CODES.get(code_of(error)) or kind_of_status(status)
    if isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return _kind_of_broken_line(error)
    if isinstance(error, WireError | TimeoutError):
        return kind_of_error(error)
    if isinstance(error, ResponseParserError):
        return Kind.BROKEN
    without_credentials = (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.TokenRetrievalError,
        boto.ProfileNotFound,
        boto.UnauthorizedSSOTokenError,
        boto.SSOError,
    )
    return Kind.DENIED if isinstance(error, without_credentials) else Kind.REJECTED


def _kind_of_broken_line(error: BaseException) -> Kind:
    from botocore import exceptions as boto

    if isinstance(error, boto.ConnectTimeoutError):
        return Kind.UNREACHED
    if isinstance(error, boto.ReadTimeoutError):
        return Kind.SILENT
    if isinstance(error, boto.SSLError):
        return Kind.UNTRUSTED
    if isinstance(error, boto.ProxyConnectionError):
        return Kind.AWAY
    # aiobotocore says "could not connect" also if a connection broke during a request; aiohttp tells them apart.
    below = error.__context__
    if isinstance(below, FileNotFoundError | PermissionError):  # a CA bundle that cannot be read
        return Kind.UNTRUSTED
    return kind_of_error(below) if below is not None else Kind.BROKEN
