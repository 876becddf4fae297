"""The far sides we test against keep the promises that the real ones make."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.store.fake_gcs import PAGE, FakeGcs
from conformance.store.moto_s3 import MotoS3


def ask(method: str, url: str, data: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One request without any library of ours or theirs."""
    headers["Authorization"] = "AWS4-HMAC-SHA256 Credential=AKIATESTING/20260101/us-east-1/s3/aws4_request"
    headers["Content-Type"] = "application/octet-stream"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=data, method=method, headers=named)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, dict(refusal.headers), refusal.read()


def test_moto_honours_if_none_match(moto: MotoS3) -> None:
    url = f"{moto.url}/bucket/honest-create"

    statuses = [ask("PUT", url, data, If_None_Match="*")[0] for data in (b"first", b"second")]

    assert statuses == [200, 412]
    assert ask("GET", url)[2] == b"first"


def test_moto_honours_if_match(moto: MotoS3) -> None:
    url = f"{moto.url}/bucket/honest-replace"
    past = ask("PUT", url, b"first")[1]["ETag"]

    statuses = [ask("PUT", url, data, If_Match=past)[0] for data in (b"second", b"third")]

    assert statuses == [200, 412]
    assert ask("GET", url)[2] == b"second"


def test_moto_says_404_to_if_match_on_nothing(moto: MotoS3) -> None:
    assert ask("PUT", f"{moto.url}/bucket/honest-nothing", b"x", If_Match='"0"')[0] == 404


def test_moto_lists_page_by_page(moto: MotoS3) -> None:
    for number in range(PAGE + 1):
        ask("PUT", f"{moto.url}/bucket/pages/{number}", b"x")

    listed = ask("GET", f"{moto.url}/bucket?list-type=2&prefix=pages/")[2]

    assert listed.count(b"<Key>") == PAGE
    assert b"<IsTruncated>true</IsTruncated>" in listed


def upload(gcs: FakeGcs, name: str, data: bytes, condition: str = "") -> int:
    url = f"{gcs.url}/upload/storage/v1/b/bucket/o?uploadType=media&name={name}{condition}"
    return ask("POST", url, data)[0]


def test_the_fake_gcs_honours_generations(gcs: FakeGcs) -> None:
    created = [upload(gcs, "honest", data, "&ifGenerationMatch=0") for data in (b"first", b"second")]
    _, headers, body = ask("GET", f"{gcs.url}/storage/v1/b/bucket/o/honest?alt=media")
    past = headers["X-Goog-Generation"]
    replaced = [upload(gcs, "honest", data, f"&ifGenerationMatch={past}") for data in (b"third", b"fourth")]

    assert (created, body, replaced) == ([200, 412], b"first", [200, 412])
    assert ask("GET", f"{gcs.url}/storage/v1/b/bucket/o/honest?alt=media")[2] == b"third"


def test_the_fake_gcs_never_gives_a_generation_twice(gcs: FakeGcs) -> None:
    seen = []
    for _ in range(3):
        upload(gcs, "same", b"same content")
        seen.append(ask("GET", f"{gcs.url}/storage/v1/b/bucket/o/same?alt=media")[1]["X-Goog-Generation"])

    assert seen == sorted(set(seen))


def test_the_fake_gcs_tells_a_missing_bucket_from_a_missing_object(gcs: FakeGcs) -> None:
    missing = [ask("GET", f"{gcs.url}/storage/v1/b/{place}?alt=media") for place in ("bucket/o/none", "none/o/x")]

    assert [status for status, _, _ in missing] == [404, 404]
    assert b"No such object" in missing[0][2]
    assert b"bucket does not exist" in missing[1][2]


@pytest.fixture
def plain_gcsfs(gcs: FakeGcs) -> Iterator[Any]:
    """gcsfs as anybody would use it, to see that the fake speaks what gcsfs speaks."""
    from fsspec.asyn import sync
    from gcsfs.core import GCSFileSystem

    files = GCSFileSystem(project="", token="anon", endpoint_url=gcs.url, skip_instance_cache=True)
    yield files
    sync(files.loop, files.session.close)


def test_gcsfs_itself_can_write_read_and_list_with_the_fake(plain_gcsfs: Any) -> None:
    names = [f"bucket/plain/{number}" for number in range(2 * PAGE + 1)]
    for name in names:
        plain_gcsfs.pipe_file(name, b"--==0==\n\n" + name.encode())

    assert plain_gcsfs.cat_file(names[0]) == b"--==0==\n\n" + names[0].encode()
    assert sorted(plain_gcsfs.find("bucket/plain")) == names


def test_gcsfs_itself_is_refused_when_it_creates_twice(plain_gcsfs: Any) -> None:
    plain_gcsfs.pipe_file("bucket/exclusive", b"first", mode="create")

    with pytest.raises(FileExistsError):
        plain_gcsfs.pipe_file("bucket/exclusive", b"second", mode="create")

    assert plain_gcsfs.cat_file("bucket/exclusive") == b"first"
