"""Assets from servers on loopback that cut, lie, redirect, dribble or are not there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Protocol

import pytest

from builders.assets import DATA, an_asset, sha256
from fakes import slow_mirror
from fakes.mirror import Mirror, dead_url, serving
from fakes.slow_mirror import SlowMirror
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.nodeup.assets.fetch import Time, fetch, file_name
from protokube.nodeup.values import Asset

WRONG = b"<html>please log in</html>" * 8_000


class Serve(Protocol):
    def __call__(self, mirror: Mirror) -> str: ...


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve a mirror; returns the URL of the asset there."""
    with ExitStack() as running:
        yield lambda mirror: f"{running.enter_context(serving(mirror)).url}/kubelet"


@dataclass
class Clock:
    """Pauses take no time, and are noted."""

    at: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds

    @property
    def time(self) -> Time:
        return Time(now=lambda: self.at, sleep=self.sleep)


def mirror(data: bytes = DATA, **how: object) -> Mirror:
    return Mirror(files={"/kubelet": data}, **how)  # type: ignore[arg-type]


def got(asset: Asset, folder: Path, clock: Clock | None = None, lines: list[str] | None = None) -> bytes:
    """Fetched, under its digest, and nothing beside it."""
    path = fetch(asset, folder, lines.append if lines is not None else lambda _: None, (clock or Clock()).time)
    assert path == folder / f"sha256-{asset.sha256}"
    assert [each.name for each in folder.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_bytes()


def failure(asset: Asset, folder: Path, clock: Clock | None = None) -> ProtokubeError:
    with pytest.raises(ProtokubeError) as raised:
        fetch(asset, folder, lambda _: None, (clock or Clock()).time)
    assert not (folder / file_name(asset)).exists()
    return raised.value


def test_an_asset_is_fetched_once_and_tells_its_progress(tmp_path: Path, serve: Serve) -> None:
    source, lines = mirror(), list[str]()
    asset = an_asset(DATA, serve(source))

    assert got(asset, tmp_path, lines=lines) == DATA
    assert got(asset, tmp_path) == DATA
    assert len(source.asked) == 1
    assert re.fullmatch(r"kubelet from 127\.0\.0\.1:\d+: 0 of 0 MB, 100 %", lines[-1])


def test_a_cached_file_that_was_damaged_is_fetched_again(tmp_path: Path, serve: Serve) -> None:
    asset = an_asset(DATA, serve(mirror()))
    got(asset, tmp_path)
    (tmp_path / file_name(asset)).write_bytes(DATA[:-1] + b"x")

    assert got(asset, tmp_path) == DATA


def test_a_dead_mirror_is_left_for_the_next_one(tmp_path: Path, serve: Serve) -> None:
    clock = Clock()

    assert got(an_asset(DATA, dead_url(), serve(mirror())), tmp_path, clock) == DATA
    assert clock.pauses == []


def test_without_a_mirror_that_answers_it_is_tried_some_times_and_the_mirrors_are_named(tmp_path: Path) -> None:
    clock, asset = Clock(), an_asset(DATA, f"{dead_url(0)}/kubelet", f"{dead_url(1)}/kubelet")

    error = failure(asset, tmp_path, clock)

    assert isinstance(error, TryLater)
    assert error.message == "cannot download kubelet"
    assert f"{dead_url(0)}/kubelet: [Errno 111] Connection refused" in error.saw
    assert f"{dead_url(1)}/kubelet: [Errno 111] Connection refused" in error.saw
    assert error.want == f"sha256 {asset.sha256}"
    assert sum(clock.pauses) < 120
    assert list(tmp_path.iterdir()) == []


def test_wrong_bytes_are_refused_with_file_mirror_and_both_digests(tmp_path: Path, serve: Serve) -> None:
    url = serve(mirror(WRONG))
    asset = an_asset(DATA, url)

    error = failure(asset, tmp_path)

    assert isinstance(error, Refused)
    assert error.message == "no source has the right kubelet"
    assert error.saw == f"{url}: its sha256 is {sha256(WRONG)}"
    assert error.want == f"sha256 {asset.sha256}"
    assert list(tmp_path.iterdir()) == []


def test_a_mirror_with_wrong_bytes_and_a_matching_checksum_beside_them_is_refused(tmp_path: Path, serve: Serve) -> None:
    lying = mirror(WRONG)
    lying.files["/kubelet.sha256"] = sha256(WRONG).encode()
    url = serve(lying)

    error = failure(an_asset(DATA, url), tmp_path)

    assert isinstance(error, Refused)
    assert sha256(WRONG) in error.saw
    assert error.hint == "correct the mirrors, or name others; a checksum beside a file proves nothing"
    assert [path for path, _ in lying.asked] == ["/kubelet"]


def test_a_mirror_with_wrong_bytes_is_left_for_one_with_the_right_ones(tmp_path: Path, serve: Serve) -> None:
    lines: list[str] = []
    bad = serve(mirror(WRONG))
    asset = an_asset(DATA, bad, serve(mirror()))

    assert got(asset, tmp_path, lines=lines) == DATA
    assert f"kubelet: {bad}: its sha256 is {sha256(WRONG)}, and not {asset.sha256}" in lines


def test_where_one_mirror_lies_and_another_is_down_it_is_tried_again_later(tmp_path: Path, serve: Serve) -> None:
    error = failure(an_asset(DATA, serve(mirror(WRONG)), dead_url()), tmp_path)

    assert isinstance(error, TryLater)
    assert sha256(WRONG) in error.saw


def test_a_mirror_that_sends_more_than_the_asset_has_is_stopped(tmp_path: Path, serve: Serve) -> None:
    url = serve(mirror(DATA * 20))

    error = failure(an_asset(DATA, url, size=len(DATA)), tmp_path)

    assert isinstance(error, Refused)
    assert error.saw == f"{url}: it sends more than {len(DATA)} bytes"


def test_a_file_that_nobody_has_is_refused(tmp_path: Path, serve: Serve) -> None:
    error = failure(an_asset(DATA, serve(Mirror(files={}))), tmp_path)

    assert isinstance(error, Refused)
    assert "HTTP 404 Not Found" in error.saw


def test_a_cut_download_goes_on_where_it_was(tmp_path: Path, serve: Serve) -> None:
    cutting = mirror(at_most=90_000)

    assert got(an_asset(DATA, serve(cutting)), tmp_path) == DATA
    assert [wanted for _, wanted in cutting.asked] == ["", "bytes=90000-", "bytes=180000-"]


def test_a_partial_file_of_an_earlier_run_is_resumed_from_another_mirror(tmp_path: Path, serve: Serve) -> None:
    good = mirror()
    asset = an_asset(DATA, serve(good))
    (tmp_path / f"{file_name(asset)}.part").write_bytes(DATA[:100_000])

    assert got(asset, tmp_path) == DATA
    assert [wanted for _, wanted in good.asked] == ["bytes=100000-"]


@pytest.mark.parametrize("have", [100_000, len(DATA), 2 * len(DATA)])
def test_a_partial_file_of_wrong_bytes_is_found_at_the_end_and_started_over_once(
    tmp_path: Path, serve: Serve, have: int
) -> None:
    good = mirror()
    asset = an_asset(DATA, serve(good))
    (tmp_path / f"{file_name(asset)}.part").write_bytes(b"x" * have)

    assert got(asset, tmp_path) == DATA
    assert [wanted for _, wanted in good.asked] == [f"bytes={have}-", ""]


def test_a_partial_file_that_is_complete_needs_no_mirror(tmp_path: Path) -> None:
    asset = an_asset(DATA, dead_url())
    (tmp_path / f"{file_name(asset)}.part").write_bytes(DATA)

    assert got(asset, tmp_path) == DATA


def test_the_beginning_of_a_lying_mirror_spoils_no_good_one(tmp_path: Path, serve: Serve) -> None:
    """The lying one is cut, the good one completes its bytes: nobody knows whose were wrong until it is done again."""
    bad = mirror(WRONG[:150_000], at_most=90_000, ranges=False)
    good = mirror()

    assert got(an_asset(DATA, serve(bad), serve(good)), tmp_path) == DATA
    assert [wanted for _, wanted in good.asked] == ["bytes=90000-", ""]


def test_a_page_in_place_of_the_rest_does_not_destroy_what_is_there(tmp_path: Path, serve: Serve) -> None:
    """As from a captive portal or a proxy: 200, and a page of its own."""
    portal, good = mirror(b"<html>please log in</html>", ranges=False), mirror()
    asset = an_asset(DATA, serve(portal), serve(good), size=len(DATA))
    (tmp_path / f"{file_name(asset)}.part").write_bytes(DATA[:100_000])

    assert got(asset, tmp_path) == DATA
    assert [wanted for _, wanted in good.asked] == ["bytes=100000-"]


@pytest.mark.parametrize("reset", [False, True])
def test_over_a_slow_link_with_cuts_at_most_a_twentieth_is_fetched_twice(tmp_path: Path, reset: bool) -> None:
    """50 kB/s, cut every 200 kB, ten times as fast."""
    data = DATA * 6
    with slow_mirror.serving(SlowMirror(data, bytes_per_second=500_000, cut_after=200_000, reset=reset)) as slow:
        asset = an_asset(data, slow.url)
        assert fetch(asset, tmp_path, lambda _: None).read_bytes() == data

    assert len(data) > 1_000_000
    assert slow.connections >= len(data) // 200_000
    assert slow.sent <= 1.05 * len(data)


def test_a_mirror_that_dribbles_is_left_for_the_next_one(tmp_path: Path, serve: Serve) -> None:
    clock = Clock()
    good = mirror()

    class Dribble(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(DATA)))
            self.end_headers()
            with suppress(OSError):  # the client hangs up
                for at in range(20):
                    clock.at += 10
                    self.wfile.write(DATA[at : at + 1])
                    self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with Running(Dribble) as url:
        assert got(an_asset(DATA, url, serve(good)), tmp_path, clock) == DATA
    assert len(good.asked) == 1


def test_after_the_longest_time_it_is_given_up(tmp_path: Path, serve: Serve) -> None:
    clock = Clock()
    clock_at_each = iter(range(0, 10**7, 3600))
    late = Time(now=lambda: float(next(clock_at_each)), sleep=clock.sleep)
    with pytest.raises(TryLater) as raised:
        fetch(an_asset(DATA, serve(mirror(at_most=1000))), tmp_path, lambda _: None, late)

    assert "it took longer than 4 h" in raised.value.saw


class Server(ExitStack):
    """A server of one handler, as long as the context lasts."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.callback(self._thread.join)
        self.callback(self._server.server_close)
        self.callback(self._server.shutdown)


class Running:
    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._stack = Server(handler)

    def __enter__(self) -> str:
        return f"http://127.0.0.1:{self._stack._server.server_port}/kubelet"

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def redirecting(target: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", target)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


def test_a_redirect_is_followed(tmp_path: Path, serve: Serve) -> None:
    with Running(redirecting(serve(mirror()))) as url:
        assert got(an_asset(DATA, url), tmp_path) == DATA


def test_a_redirect_to_a_file_of_this_machine_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(DATA)
    with Running(redirecting(f"file://{secret}")) as url:
        error = failure(an_asset(DATA, url), tmp_path / "cache")

    assert f"'file://{secret}' is not allowed" in error.saw
    with Running(redirecting("ftp://host/kubelet")) as url:
        error = failure(an_asset(DATA, url), tmp_path / "cache")
    assert "it redirects to ftp://host/kubelet, which is no http or https" in error.saw


def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    with Running(redirecting("/kubelet")) as url:
        error = failure(an_asset(DATA, url), tmp_path)

    assert "HTTP 302" in error.saw


def test_the_proxy_of_the_environment_is_asked(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Mirror(files={"http://assets.invalid/kubelet": DATA})
    url = serve(proxy)
    monkeypatch.setenv("http_proxy", url.removesuffix("/kubelet"))
    monkeypatch.setenv("no_proxy", "")

    assert got(an_asset(DATA, "http://assets.invalid/kubelet"), tmp_path) == DATA


@pytest.mark.parametrize(
    "url", ["ftp://host/kubelet", "kubelet", "file://host/kubelet", "http:///kubelet", "data:,x", ""]
)
def test_other_kinds_of_sources_are_no_sources(tmp_path: Path, url: str) -> None:
    error = failure(an_asset(DATA, url), tmp_path)

    assert isinstance(error, InvalidRequest)
    assert error.message == f"kubelet has a source that cannot be used: {url!r}"


KILLED = """
import sys
from pathlib import Path
from protokube.nodeup.assets.fetch import fetch
from protokube.nodeup.values import Asset
fetch(Asset(name="kubelet", sha256=sys.argv[1], urls=(sys.argv[2],)), Path(sys.argv[3]), print)
"""


def test_a_fetch_that_is_killed_is_resumed_by_the_next(tmp_path: Path) -> None:
    data = DATA * 3
    waiting = Mirror(files={"/kubelet": data}, at_most=250_000, holding=threading.Event())
    with serving(waiting) as held:
        url = f"{held.url}/kubelet"
        command = [sys.executable, "-c", KILLED, sha256(data), url, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
            part = tmp_path / f"sha256-{sha256(data)}.part"
            while not (part.exists() and part.stat().st_size == 250_000):
                assert child.poll() is None
                os.sched_yield()
            child.send_signal(signal.SIGKILL)
        held.at_most = None
        assert got(an_asset(data, url), tmp_path) == data
    assert [wanted for _, wanted in waiting.asked] == ["", "bytes=250000-"]


def test_two_processes_fetch_it_once(tmp_path: Path) -> None:
    with serving(mirror()) as source:
        command = [sys.executable, "-c", KILLED, sha256(DATA), f"{source.url}/kubelet", str(tmp_path)]
        children = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(3)]
        codes = [child.wait(60) for child in children]

    assert codes == [0, 0, 0]
    assert len(source.asked) == 1
    assert [each.name for each in tmp_path.iterdir()] == [f"sha256-{sha256(DATA)}"]


def test_passwords_and_signatures_in_urls_are_never_told(tmp_path: Path) -> None:
    lines: list[str] = []
    host = dead_url().removeprefix("http://")
    asset = an_asset(DATA, f"http://user:secret@{host}/kubelet?X-Amz-Signature=secret")
    with pytest.raises(TryLater) as raised:
        fetch(asset, tmp_path, lines.append, Clock().time)

    assert f"http://{host}/kubelet: " in raised.value.saw
    assert "secret" not in f"{raised.value} {lines}"


@pytest.mark.parametrize("digest", ["", "abc", "../../etc/passwd", "A" * 64])
def test_an_asset_without_a_digest_is_refused(tmp_path: Path, digest: str) -> None:
    with pytest.raises(InvalidRequest, match="kubelet has no sha256"):
        fetch(Asset(name="kubelet", sha256=digest, urls=(dead_url(),)), tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []
