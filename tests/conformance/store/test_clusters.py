"""A cluster goes into each kind of store and comes back as it was, by the commands a person types."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conformance.store.conftest import Place
from protokube.cli.main import run
from protokube.errors import ExitCode

MINIMAL = str(Path(__file__).resolve().parents[3] / "examples" / "minimal.yaml")
NAME = "dev.example.com"


def says(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = ExitCode.OK) -> str:
    """What the command prints, with the exit code it should have."""
    assert run(list(arguments)) == code, capsys.readouterr().err
    return capsys.readouterr().out


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """A test prints enough."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory, and the URL of a web server before it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield tmp_path, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_cluster_comes_back_byte_for_byte_and_completes_to_itself(
    place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    written = says(capsys, "complete", MINIMAL, "--store", place.url)
    assert [line.split()[0] for line in written.splitlines()] == ["written"] * 6
    assert says(capsys, "get", "--store", place.url) == f"{NAME}\n"

    back = says(capsys, "get", NAME, "--store", place.url)
    (tmp_path / "back.yaml").write_text(back)
    assert says(capsys, "complete", str(tmp_path / "back.yaml")) == back
    assert f"configBase: {place.url}/{NAME}" in back


def test_writing_the_same_again_writes_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    says(capsys, "complete", MINIMAL, "--store", place.url)
    told = json.loads(says(capsys, "complete", MINIMAL, "--store", place.url, "-o", "json"))
    assert set(told["paths"].values()) == {"unchanged"}
    assert f"{NAME}/cluster.spec" in told["paths"]


def test_what_the_user_wrote_is_kept_to_the_letter(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    says(capsys, "complete", MINIMAL, "--store", place.url)
    assert says(capsys, "get", NAME, "--store", place.url, "--as-written") == Path(MINIMAL).read_text()


def test_a_group_that_left_the_spec_is_not_read_back(
    place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    says(capsys, "complete", MINIMAL, "--store", place.url)
    smaller = tmp_path / "smaller.yaml"
    smaller.write_text(Path(MINIMAL).read_text() + "  masters: 1\n  nodes: 0\n")
    says(capsys, "complete", str(smaller), "--store", place.url)
    documents = json.loads(says(capsys, "get", NAME, "--store", place.url, "-o", "json"))["items"]
    assert [each["metadata"]["name"] for each in documents] == [NAME, "master-us-east-1a"]


def test_a_broken_spec_leaves_the_store_as_it_was(
    place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    says(capsys, "complete", MINIMAL, "--store", place.url)
    before = says(capsys, "get", NAME, "--store", place.url)
    broken = tmp_path / "broken.yaml"
    broken.write_text(Path(MINIMAL).read_text() + "  masters: 2\n")
    says(capsys, "complete", str(broken), "--store", place.url, code=ExitCode.INVALID)
    assert says(capsys, "get", NAME, "--store", place.url) == before


def test_a_cluster_can_be_read_over_http_from_behind_a_web_server(
    site: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, url = site
    says(capsys, "complete", MINIMAL, "--store", directory.as_uri())
    assert says(capsys, "get", NAME, "--store", url) == says(capsys, "get", NAME, "--store", directory.as_uri())


def test_over_http_writing_and_listing_are_refused_in_plain_words(
    site: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, url = site
    assert run(["complete", MINIMAL, "--store", url]) == ExitCode.REFUSED
    assert "a store over HTTP can only be read" in capsys.readouterr().err
    assert run(["get", "--store", url]) == ExitCode.REFUSED
    assert "a web server does not list its files" in capsys.readouterr().err
