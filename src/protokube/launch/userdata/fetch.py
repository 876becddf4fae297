"""Fetch one file by its sha256, from the first place that has it: fetch.py SHA256 FILE URL...

A program of its own inside the launch script: any Python from 3.11 on runs it, with the standard library alone. It
reads https, http and file URLs, s3://BUCKET/KEY?region=NAME with the role of an EC2 instance, and gs://BUCKET/KEY with
the service account of a GCE instance. It exits with 0 if FILE is right, and with 3 if no place had it.
"""

import hashlib
import hmac
import json
import os
import sys
import time
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

SILENCE, AT_ONCE, EVERY = 30, 1 << 18, 5_000_000
LARGEST, LONGEST = 1 << 29, 3600.0
EC2 = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254").rstrip("/")
GCE = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
EMPTY = hashlib.sha256(b"").hexdigest()
Headers = dict[str, str]


class Redirects(HTTPRedirectHandler):
    """A redirect gets no token, and leads to no file."""

    max_redirections = 5

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise OSError(f"it redirects to {newurl}")
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        for name in ("Authorization", "X-amz-security-token"):
            if found:
                found.remove_header(name)
        return found


def main(sha256: str, path: Path, urls: list[str]) -> int:
    """The exit code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and digest(path) == sha256:
        return 0
    for url in urls:
        try:
            if from_one(url, sha256, path):
                return 0
        except (OSError, HTTPException, ValueError, KeyError, IndexError) as why:  # HTTPError is an OSError
            tell(f"{url.partition('?')[0]}: {why}")
    return 3


def from_one(url: str, sha256: str, path: Path) -> bool:
    """Whether this place had the file; a wrong beginning of an earlier attempt is thrown away once."""
    part = path.with_name(f"{path.name}.part")
    for _ in range(2):
        had = part.stat().st_size if part.exists() else 0
        receive(url, part, had)
        came = digest(part)
        if came == sha256:
            part.replace(path)
            return True
        part.unlink()
        if not had:
            break
    tell(f"{url.partition('?')[0]}: refused, its sha256 is {came}, and not {sha256}")
    return False


def receive(url: str, part: Path, had: int, largest: int = LARGEST) -> None:
    """Complete the partial file."""
    scheme = urlsplit(url).scheme
    if scheme == "file":
        with Path(unquote(urlsplit(url).path)).open("rb") as source, part.open("wb") as target:
            while data := source.read(AT_ONCE):
                target.write(data)
        return
    where, headers = {"s3": s3, "gs": gs}.get(scheme, plain)(url)
    request = Request(where, headers={**headers, **({"Range": f"bytes={had}-"} if had else {})})  # noqa: S310
    try:
        answer = build_opener(Redirects()).open(request, timeout=SILENCE)
    except HTTPError as error:
        if error.code == 416:  # there are no bytes after ours: the digest tells whether they are right
            return
        raise
    with answer:
        had = had if answer.status == 206 else 0
        left = int(answer.headers.get("Content-Length") or 0)
        with part.open("ab" if had else "wb") as file:
            shown, whole, end = had, had + left, time.monotonic() + LONGEST
            while data := answer.read1(AT_ONCE):
                had += len(data)
                if had > largest or time.monotonic() > end:
                    os.truncate(part, 0)
                    raise OSError(f"it sent {had} bytes and did not end")
                file.write(data)
                file.flush()
                if had - shown >= EVERY:
                    tell(f"{had // 10**6} of {whole // 10**6} MB")
                    shown = had
    if left and had < whole:
        raise OSError(f"the connection ended after {had} of {whole} bytes")


def plain(url: str) -> tuple[str, Headers]:
    return url, {}


def s3(url: str) -> tuple[str, Headers]:
    """Signed with the credentials of the instance's role (AWS Signature Version 4)."""
    parts = urlsplit(url)
    bucket, key, asked = parts.netloc, quote(unquote(parts.path), safe="/~"), parse_qs(parts.query)
    token = metadata(f"{EC2}/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "300"}, "PUT")
    about = {"X-aws-ec2-metadata-token": token}
    region = asked["region"][0] if "region" in asked else metadata(f"{EC2}/latest/meta-data/placement/region", about)
    roles = f"{EC2}/latest/meta-data/iam/security-credentials/"
    keys = json.loads(metadata(roles + metadata(roles, about).split()[0], about))
    china = ".cn" if region.startswith("cn-") else ""
    base = os.environ.get("AWS_ENDPOINT_URL_S3") or f"https://s3.{region}.amazonaws.com{china}"
    return f"{base}/{bucket}{key}", signed(f"{base}/{bucket}{key}", region, keys, time.gmtime())


def signed(url: str, region: str, keys: dict[str, str], now: time.struct_time) -> Headers:
    """The headers of a GET request."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", now)
    headers = {
        "host": urlsplit(url).netloc,
        "x-amz-content-sha256": EMPTY,
        "x-amz-date": stamp,
        "x-amz-security-token": keys["Token"],
    }
    names = ";".join(headers)
    lines = ["GET", urlsplit(url).path, "", *(f"{name}:{value}" for name, value in headers.items()), "", names, EMPTY]
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"
    secret = f"AWS4{keys['SecretAccessKey']}".encode()
    for each in scope.split("/"):
        secret = hmac.digest(secret, each.encode(), "sha256")
    signature = hmac.digest(secret, text.encode(), "sha256").hex()
    granted = f"AWS4-HMAC-SHA256 Credential={keys['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "Authorization": granted}


def gs(url: str) -> tuple[str, Headers]:
    parts = urlsplit(url)
    where = f"http://{GCE}/computeMetadata/v1/instance/service-accounts/default/token"
    token = json.loads(metadata(where, {"Metadata-Flavor": "Google"}))["access_token"]
    base = os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
    return f"{base}/{parts.netloc}{quote(unquote(parts.path))}", {"Authorization": f"Bearer {token}"}


def metadata(url: str, headers: Headers, method: str = "GET") -> str:
    """Ask the metadata service, which no proxy reaches."""
    request = Request(url, headers=headers, method=method)  # noqa: S310
    with build_opener(ProxyHandler({})).open(request, timeout=10) as answer:
        text: bytes = answer.read()
    return text.decode()


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
