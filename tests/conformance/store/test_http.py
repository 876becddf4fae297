"""A store behind a plain web server: read by name, and refused by name for everything else."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conformance.store.bad_server import Reply, nobody
from conformance.store.remote import Open, Serve, assert_clear
from protokube.errors import Refused, TryLater
from protokube.store import NotThere, Version
from protokube.store.guard import prove_guard
from protokube.store.open import open_store

PASSWORD = "p@ss/word"
QUOTED = "p%40ss%2Fword"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests speak for themselves."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A web server in front of a store that was written as files."""
    files = open_store(str(tmp_path / "state"))
    files.put("dev/config", b"kind: Cluster\n")
    files.put("dev/a b?#%/ünï", b"odd")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/state"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("ending", ["", "/"])
def test_what_the_server_holds_can_be_read_by_name(site: str, ending: str, reach: Open) -> None:
    store = reach("http", site + ending)

    found = store.read("dev/config")

    assert (found.path, found.data) == ("dev/config", b"kind: Cluster\n")
    assert store.url == site


def test_odd_names_reach_the_server_unharmed(site: str, reach: Open) -> None:
    assert reach("http", site).read("dev/a b?#%/ünï").data == b"odd"


def test_equal_content_has_equal_versions_and_new_content_a_new_one(site: str, reach: Open, tmp_path: Path) -> None:
    store = reach("http", site)
    first, second = store.read("dev/config").version, store.read("dev/config").version
    (tmp_path / "state/dev/config").write_bytes(b"changed")

    assert first == second
    assert store.read("dev/config").version != first


def test_what_is_not_there_is_not_there(site: str, reach: Open) -> None:
    with pytest.raises(NotThere) as caught:
        reach("http", site).read("dev/other")

    assert "dev/other" in str(caught.value)
    assert site in str(caught.value)


def test_a_path_cannot_climb_out_of_the_url(site: str, reach: Open, tmp_path: Path) -> None:
    (tmp_path / "private").write_bytes(b"precious")
    store = reach("http", site)

    with pytest.raises(Refused, match="is not a path inside a store"):
        store.read("../private")
    with pytest.raises(NotThere):
        store.read("%2e%2e/private")


def test_every_write_is_refused_with_the_url_and_what_to_use_instead(site: str, reach: Open) -> None:
    store = reach("http", site)

    for attempt in (
        lambda: store.create("dev/config", b"x"),
        lambda: store.replace("dev/config", b"x", Version("1")),
        lambda: store.put("dev/config", b"kind: Cluster\n"),
    ):
        with pytest.raises(Refused, match="can only be read") as caught:
            attempt()
        assert_clear(caught.value)
        assert site in str(caught.value)
        assert "file://, s3:// or gs://" in caught.value.want


def test_listing_is_refused_instead_of_guessed_from_html(site: str, reach: Open) -> None:
    with pytest.raises(Refused, match="does not list its files") as caught:
        reach("http", site).list_paths("dev")

    assert_clear(caught.value)


def test_it_does_not_claim_to_guard(site: str, reach: Open) -> None:
    store = reach("http", site)

    assert not store.guards
    with pytest.raises(Refused, match="refusing to rely on") as caught:
        prove_guard(store)
    assert site in str(caught.value)


def test_a_closed_store_can_be_used_again(site: str, reach: Open) -> None:
    store = reach("http", site)
    store.close()
    store.read("dev/config")
    store.close()
    store.close()

    assert store.read("dev/config").data == b"kind: Cluster\n"


def with_user(url: str) -> str:
    return url.replace("http://", f"http://me:{QUOTED}@")


def test_name_and_password_in_the_url_reach_the_server(serve: Serve, reach: Open) -> None:
    expected = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    server = serve(lambda _method, _path: Reply(200, b"let in"))

    assert reach("http", with_user(server.url)).read("dev/config").data == b"let in"
    assert server.authorizations == [expected]


@pytest.mark.parametrize("status", [403, 500])
def test_a_password_in_the_url_is_never_shown(status: int, serve: Serve, reach: Open) -> None:
    store = reach("http", with_user(serve(Reply(status)).url))

    with pytest.raises((Refused, TryLater)) as caught:
        store.read("dev/config")

    shown: list[str] = [store.url]
    error: BaseException | None = caught.value
    while error is not None:
        shown += [str(error), repr(error)]
        error = error.__cause__
    assert not [text for text in shown if PASSWORD in text or QUOTED in text]


def test_a_password_is_not_shown_when_nobody_listens(reach: Open) -> None:
    with nobody() as url, pytest.raises(TryLater) as caught:
        reach("http", with_user(url)).read("dev/config")

    assert_clear(caught.value)
    assert QUOTED not in str(caught.value)
    assert PASSWORD not in str(caught.value)
