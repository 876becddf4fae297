"""A far side that is away, broken, slow or hostile: one clear error, in bounded time, and nothing done twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from conformance.store.bad_server import CUT, HANG, HANG_UP, NONSENSE, Manners, Reply, full_house, nobody
from conformance.store.fake_gcs import FakeGcs
from conformance.store.moto_s3 import MotoS3
from conformance.store.remote import HASTY, HASTY_TO_CONNECT, Open, Serve, assert_clear
from fakes.watch_server import until
from protokube.errors import Refused, TryLater
from protokube.store import AlreadyThere, Changed, Store, Unsure, Version
from protokube.store.open import open_store

READABLE = pytest.mark.parametrize("kind", ["s3", "gs", "http"])
WRITABLE = pytest.mark.parametrize("kind", ["s3", "gs"])
GUARDED = pytest.mark.parametrize(
    "write",
    [lambda store: store.create("dev/config", b"x"), lambda store: store.replace("dev/config", b"x", Version("7"))],
    ids=["create", "replace"],
)
Write = Callable[[Store], object]

LOGIN_PAGE = Reply(200, b"<html><body>please log in</body></html>", {"Content-Type": "text/html"})
WRITING = ("PUT", "POST")


@pytest.fixture(autouse=True)
def _nothing_is_printed(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Vendors like to log a traceback before they raise; none may reach the screen."""
    yield
    assert capfd.readouterr().err == ""
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def missing_then(reply: Reply) -> Manners:
    """Nothing is there yet, and every write meets the reply."""
    return lambda method, _path: reply if method in WRITING else Reply(404, b"<Error><Code>NoSuchKey</Code></Error>")


@READABLE
def test_a_store_where_nothing_listens_is_for_later(kind: str, reach: Open) -> None:
    with nobody() as url, pytest.raises(TryLater, match="no server answers") as caught:
        reach(kind, url).read("dev/config")

    assert_clear(caught.value)
    assert "dev/config" in str(caught.value)
    assert "127.0.0.1" in caught.value.saw


@WRITABLE
@GUARDED
def test_a_write_that_was_never_sent_is_not_in_doubt(kind: str, write: Write, reach: Open) -> None:
    with nobody() as url, pytest.raises(TryLater) as caught:
        write(reach(kind, url))

    assert not isinstance(caught.value, Unsure)
    assert_clear(caught.value)


@WRITABLE
def test_a_connection_that_never_comes_about_leaves_no_doubt_and_takes_bounded_time(kind: str, reach: Open) -> None:
    begun = time.monotonic()

    with full_house() as url, pytest.raises(TryLater, match="no connection came about") as caught:
        reach(kind, url, HASTY_TO_CONNECT).create("dev/config", b"x")

    assert not isinstance(caught.value, Unsure)
    assert_clear(caught.value)
    assert time.monotonic() - begun < 20


@READABLE
def test_a_server_that_hangs_is_given_up_after_one_time_limit(kind: str, reach: Open, serve: Serve) -> None:
    server = serve(HANG)
    store = reach(kind, server.url, HASTY)
    begun = time.monotonic()

    with pytest.raises(TryLater, match="did not answer in time") as caught:
        store.read("dev/config")

    assert_clear(caught.value)
    assert time.monotonic() - begun < 20
    until(lambda: server.asked, "the question has arrived")
    assert len(server.asked) == 1


@WRITABLE
@GUARDED
def test_a_guarded_write_without_an_answer_is_in_doubt(kind: str, write: Write, reach: Open, serve: Serve) -> None:
    server = serve(missing_then(HANG))

    with pytest.raises(Unsure, match="may have been written") as caught:
        write(reach(kind, server.url, HASTY))

    assert_clear(caught.value)
    assert "read it again" in caught.value.hint
    until(lambda: server.asked, "the question has arrived")
    assert len(server.asked) == 1


@WRITABLE
@GUARDED
def test_a_guarded_write_is_sent_once_when_the_server_hangs_up(
    kind: str, write: Write, reach: Open, serve: Serve
) -> None:
    """aiohttp would send the PUT again, and the second one would lose against the first."""
    server = serve(missing_then(HANG_UP))

    with pytest.raises(Unsure) as caught:
        write(reach(kind, server.url))

    assert_clear(caught.value)
    assert len(server.asked) == 1


@WRITABLE
@GUARDED
@pytest.mark.parametrize("status", [500, 503])
def test_a_guarded_write_that_fails_inside_the_server_is_sent_once_and_in_doubt(
    kind: str, write: Write, status: int, reach: Open, serve: Serve
) -> None:
    server = serve(missing_then(Reply(status)))

    with pytest.raises(Unsure) as caught:
        write(reach(kind, server.url))

    assert_clear(caught.value)
    assert len(server.asked) == 1


@WRITABLE
@GUARDED
def test_a_guarded_write_answered_in_another_protocol_is_in_doubt(
    kind: str, write: Write, reach: Open, serve: Serve
) -> None:
    server = serve(missing_then(NONSENSE))

    with pytest.raises(Unsure) as caught:
        write(reach(kind, server.url))

    assert_clear(caught.value)
    assert len(server.asked) == 1


@READABLE
def test_a_read_answered_in_another_protocol_is_an_error_without_a_traceback(
    kind: str, reach: Open, serve: Serve
) -> None:
    with pytest.raises((TryLater, Refused)) as caught:
        reach(kind, serve(NONSENSE).url).read("dev/config")

    assert_clear(caught.value)


@READABLE
@pytest.mark.parametrize("reply", [Reply(500), Reply(503), HANG_UP, CUT], ids=["500", "503", "hang up", "cut"])
def test_a_read_that_fails_fast_is_asked_three_times(kind: str, reply: Reply, reach: Open, serve: Serve) -> None:
    server = serve(reply)

    with pytest.raises(TryLater) as caught:
        reach(kind, server.url).read("dev/config")

    assert_clear(caught.value)
    assert len(server.asked) == 3 or (reply is HANG_UP and len(server.asked) == 6)  # aiohttp asks a GET again itself


@WRITABLE
def test_a_put_is_asked_three_times_because_doing_it_twice_is_the_same(kind: str, reach: Open, serve: Serve) -> None:
    server = serve(missing_then(Reply(500)))

    with pytest.raises(TryLater) as caught:
        reach(kind, server.url).put("dev/config", b"x")

    assert not isinstance(caught.value, Unsure)
    assert len([method for method in server.methods if method in WRITING]) == 3


@WRITABLE
def test_a_server_that_recovers_within_three_tries_is_never_mentioned(kind: str, reach: Open, serve: Serve) -> None:
    replies = iter([Reply(500), Reply(502), Reply(200, b"content", {"ETag": '"1"', "X-Goog-Generation": "1"})])
    server = serve(lambda _method, _path: next(replies))

    assert reach(kind, server.url).read("dev/config").data == b"content"


@pytest.mark.parametrize(
    ("kind", "busy"),
    [
        ("s3", Reply(503, b"<Error><Code>SlowDown</Code></Error>")),
        ("s3", Reply(409, b"<Error><Code>ConditionalRequestConflict</Code></Error>")),
        ("gs", Reply(429, b'{"error": {"message": "slow down"}}')),
    ],
)
def test_a_guarded_write_turned_away_without_being_looked_at_is_sent_again(
    kind: str, busy: Reply, reach: Open, serve: Serve
) -> None:
    replies = iter([busy, Reply(200, b'{"generation": "5"}' if kind == "gs" else b"", {"ETag": '"5"'})])
    server = serve(lambda _method, _path: next(replies))

    assert "5" in reach(kind, server.url).create("dev/config", b"x")
    assert len(server.asked) == 2


@READABLE
@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_does_not_let_us_in_is_for_a_person(kind: str, status: int, reach: Open, serve: Serve) -> None:
    server = serve(Reply(status))

    with pytest.raises(Refused, match="does not let us in") as caught:
        reach(kind, server.url).read("dev/config")

    assert_clear(caught.value)
    assert len(server.asked) == 1


@WRITABLE
@GUARDED
def test_a_write_that_is_forbidden_is_not_in_doubt(kind: str, write: Write, reach: Open, serve: Serve) -> None:
    with pytest.raises(Refused, match="does not let us in") as caught:
        write(reach(kind, serve(missing_then(Reply(403))).url))

    assert_clear(caught.value)


@WRITABLE
def test_a_login_page_in_between_never_passes_for_a_store(kind: str, reach: Open, serve: Serve) -> None:
    store = reach(kind, serve(LOGIN_PAGE).url)

    for ask in (lambda: store.read("dev/config"), lambda: store.list_paths(), lambda: store.list_paths("dev")):
        with pytest.raises(TryLater) as caught:
            ask()
        assert_clear(caught.value)
    with pytest.raises(Unsure):
        store.create("dev/config", b"x")


@WRITABLE
def test_the_lost_condition_of_a_replace_on_something_gone_is_a_change(kind: str, reach: Open, serve: Serve) -> None:
    gone = Reply(404, b"<Error><Code>NoSuchKey</Code></Error>") if kind == "s3" else Reply(412)

    with pytest.raises(Changed):
        reach(kind, serve(gone).url).replace("dev/config", b"x", Version("7"))


@WRITABLE
@pytest.mark.parametrize("status", [404, 405])
def test_a_create_that_is_not_understood_never_passes_for_a_lost_race(
    kind: str, status: int, reach: Open, serve: Serve
) -> None:
    with pytest.raises(Refused) as caught:
        reach(kind, serve(Reply(status)).url).create("dev/config", b"x")

    assert not isinstance(caught.value, AlreadyThere)
    assert_clear(caught.value)


@WRITABLE
def test_a_bucket_that_is_not_there_is_named(
    kind: str, moto: MotoS3, gcs: FakeGcs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto.url)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    store = open_store(f"{kind}://no-such-bucket/prefix")
    version = Version('"0123"' if kind == "s3" else "7")

    for ask in (
        lambda: store.read("dev/config"),
        lambda: store.list_paths(),
        lambda: store.create("dev/config", b"x"),
        lambda: store.replace("dev/config", b"x", version),
        lambda: store.put("dev/config", b"x"),
    ):
        with pytest.raises(Refused, match="there is no such bucket") as caught:
            ask()
        assert not isinstance(caught.value, AlreadyThere)
        assert f"{kind}://no-such-bucket" in str(caught.value)
        assert_clear(caught.value)
    store.close()
