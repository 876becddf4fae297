"""Where `up` has Kubernetes from: mirrors on loopback that answer, hang, lie or break off."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from builders.command import process
from fakes.mirror import Mirror, a_folder, dead_url, release, serving
from protokube.binaries import release as releases
from protokube.binaries.kubernetes import PROGRAMS, find
from protokube.binaries.product import COMPLETE
from protokube.binaries.progress import Silent
from protokube.cli.shared.progress import Progress
from protokube.cli.up.choosing import default_spec, read_default_spec
from protokube.cli.up.existing import ClusterShape
from protokube.cli.up.kubernetes import MIRRORS, Kubernetes, bring, choose_kubernetes
from protokube.cli.up.next_steps import to_add
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.spec.version import DEFAULT

LIST = f"/stable-{DEFAULT.short}.txt"
NEWER = f"{DEFAULT.short}.{DEFAULT.patch + 1}"


class Serve(Protocol):
    def __call__(self, *mirrors: Mirror) -> None: ...


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PROTOKUBE_KUBERNETES_BIN", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(MIRRORS, dead_url())
    return tmp_path


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    with ExitStack() as running:

        def start(*mirrors: Mirror) -> None:
            urls = [running.enter_context(serving(each)).url for each in mirrors]
            monkeypatch.setenv(MIRRORS, " ".join(urls))

        yield start


@pytest.fixture
def silent() -> Iterator[str]:
    """Accepts connections, and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def official(version: str = NEWER, newest: bytes | None = None) -> Mirror:
    """A version, and the list that names it."""
    files = {**release(version), LIST: newest if newest is not None else f"v{version}\n".encode()}
    return Mirror(files=files)


def choose(
    cache: Path, option: str = "", *, needed: bool = False, before: ClusterShape | None = None, dry_run: bool = False
) -> Kubernetes:
    spec, _ = read_default_spec(default_spec("laptop", 3, events=False))
    return choose_kubernetes(spec, before, option, cache, Silent(), needed=needed, dry_run=dry_run)


def test_without_a_version_the_newest_release_of_the_series_is_downloaded(cache: Path, serve: Serve) -> None:
    serve(official())

    found = choose(cache)

    assert found.here == find(NEWER, cache)
    assert found.here is not None
    assert set(found.here.programs) == set(PROGRAMS)
    assert (found.version, found.missing) == (NEWER, "")


def test_a_dry_run_says_which_release_would_be_downloaded_and_fetches_nothing(cache: Path, serve: Serve) -> None:
    assert choose(cache, dry_run=True).missing
    serve(official())

    found = choose(cache, dry_run=True)

    assert str(found) == f"Kubernetes {NEWER}, to be downloaded"
    assert list(cache.iterdir()) == []


def test_a_mirror_without_lists_has_the_tested_version(cache: Path, serve: Serve) -> None:
    serve(Mirror(files=release(str(DEFAULT))))
    assert choose(cache).version == str(DEFAULT)


@pytest.mark.parametrize("listed", [True, False])
def test_a_place_that_answers_and_has_no_such_release_leaves_etcd_alone(
    cache: Path, serve: Serve, listed: bool
) -> None:
    """A mirror of something else, or a list that is newer than the files."""
    serve(Mirror(files={LIST: f"v{NEWER}\n".encode()} if listed else {}))

    missing = choose(cache).missing

    assert missing.startswith(f"there is no kube-apiserver of Kubernetes {NEWER if listed else DEFAULT} (")
    assert "\n" not in missing


CHOOSE = """
import sys
from pathlib import Path
from protokube.binaries.progress import Silent
from protokube.cli.up.choosing import default_spec, read_default_spec
from protokube.cli.up.kubernetes import choose_kubernetes
from protokube.errors import Refused
spec, _ = read_default_spec(default_spec("laptop", 3, events=False))
for option in ("", "1.36.4"):
    try:
        print(choose_kubernetes(spec, None, option, Path(sys.argv[1]), Silent(), needed=False, dry_run=False).missing)
    except Refused as why:
        print("refused:", why.message)
"""


def test_on_a_processor_without_releases_there_is_none_and_one_that_is_named_is_refused(
    cache: Path, serve: Serve
) -> None:
    mirror = official()
    serve(mirror)

    command = ["setarch", "i686", sys.executable, "-c", CHOOSE, str(cache)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    assert said == ["Kubernetes has no programs for i686", "refused: Kubernetes has no programs for i686"]
    assert mirror.asked == []


def test_what_can_be_added_to_a_cluster_without_kubernetes_is_looked_for_when_it_is_printed(
    cache: Path, serve: Serve
) -> None:
    def added(missing: str = "") -> Kubernetes:
        return to_add(missing, cache, Progress(quiet=True))

    assert "releases of Kubernetes cannot be downloaded" in added().missing
    assert added("it has just been looked for").missing == "it has just been looked for"
    serve(official())
    assert (added().version, added().missing) == (NEWER, "")
    choose(cache)
    assert added("it was not there").here == find(NEWER, cache)


def test_the_second_up_downloads_nothing(cache: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(official())
    choose(cache)
    monkeypatch.setenv(MIRRORS, dead_url())
    assert choose(cache).version == NEWER


def test_without_a_network_there_is_none_and_the_reason_is_one_line(cache: Path) -> None:
    found = choose(cache)

    assert (found.version, found.here) == ("", None)
    assert found.missing.startswith(f"releases of Kubernetes cannot be downloaded ({dead_url()}: ")
    assert "\n" not in str(found)
    assert not list(cache.glob("kubernetes/*"))


def test_a_place_that_does_not_answer_is_waited_for_five_seconds_at_most(
    cache: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert releases.SECONDS_TO_LOOK == 5
    began = time.monotonic()
    with pytest.raises(TryLater) as raised:
        releases.look(DEFAULT.short, [silent, dead_url()], 0.5)
    assert time.monotonic() - began < 4
    assert f"{silent}: " in raised.value.saw
    assert f"{dead_url()}: " in raised.value.saw


def test_a_mirror_that_hangs_is_not_waited_for_if_another_one_answers(
    cache: Path, silent: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(official()) as good:
        monkeypatch.setenv(MIRRORS, f"{silent} {good.url}")
        found = choose(cache, NEWER)
        assert found.mirrors == (good.url, silent)
        here = bring(found, cache, Silent())
    assert here is not None
    assert here == find(NEWER, cache)


@pytest.mark.parametrize("answer", [b"<html>Please log in</html>", b"", b"v1.2", b"v9.9.9", b"v1.3600.1"])
def test_a_page_instead_of_a_version_is_no_release(cache: Path, serve: Serve, answer: bytes) -> None:
    serve(official(newest=answer))
    assert "holds no version of" in choose(cache).missing


def test_a_download_that_breaks_off_for_good_leaves_etcd_alone_and_what_came_is_kept(cache: Path, serve: Serve) -> None:
    serve(Mirror(files=official().files, at_most=15_000, ranges=False))
    broken = choose(cache)
    assert broken.version == ""
    assert "ended after 15000 of 40000 bytes" in broken.missing

    good = official()
    serve(good)
    assert choose(cache).version == NEWER
    assert good.asked_for(PROGRAMS[0]) == ["bytes=15000-"]


def test_programs_that_are_not_what_their_checksums_promise_end_up(cache: Path, serve: Serve) -> None:
    mirror = official()
    for path in [each for each in mirror.files if each.endswith("/kubelet")]:
        mirror.files[path] = b"something else"
    serve(mirror)
    with pytest.raises(Refused, match="not what its checksum promises"):
        choose(cache)


def test_a_version_that_is_named_is_needed(cache: Path) -> None:
    with pytest.raises(TryLater, match=f"no Kubernetes {NEWER} on this machine, and it cannot be downloaded") as raised:
        choose(cache, NEWER)
    assert f"`protokube get kubernetes {NEWER}`" in raised.value.hint
    assert "--kubernetes none" in raised.value.hint


def test_a_cluster_that_has_kubernetes_is_not_told_to_go_without(cache: Path) -> None:
    has, alone = (ClusterShape.of(version, False, [("main/a", "master-a")]) for version in (NEWER, "none"))
    with pytest.raises(TryLater) as raised:
        choose(cache, NEWER, before=has)
    assert "--kubernetes none" not in raised.value.hint
    with pytest.raises(TryLater) as raised:
        choose(cache, NEWER, before=alone)
    assert "--kubernetes none" in raised.value.hint


def test_who_asks_for_kubelets_needs_kubernetes(cache: Path) -> None:
    with pytest.raises(TryLater, match="cannot be downloaded"):
        choose(cache, needed=True)


def test_a_version_that_is_named_is_downloaded_only_once_it_is_brought(cache: Path, serve: Serve) -> None:
    mirror = official()
    serve(mirror)

    found = choose(cache, NEWER)

    assert (found.version, found.here) == (NEWER, None)
    assert [path for path, _ in mirror.asked] == [LIST]
    assert bring(found, cache, Silent()) == find(NEWER, cache)


def test_a_version_that_does_not_exist_is_told_with_the_newest(cache: Path, serve: Serve) -> None:
    serve(official())
    with pytest.raises(InvalidRequest, match="there is no kube-apiserver of Kubernetes") as raised:
        bring(choose(cache, f"{DEFAULT.short}.99"), cache, Silent())
    assert NEWER in raised.value.hint


def test_a_mirror_that_is_no_url_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRRORS, "ftp://mirror")
    with pytest.raises(InvalidRequest, match="is not a URL to download from"):
        choose(cache)


@pytest.mark.parametrize("mirror", ["http://a..b", "http://%20"])
def test_a_mirror_with_a_host_that_cannot_be_does_not_answer(
    cache: Path, mirror: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRRORS, mirror)
    assert f"{mirror}: " in choose(cache).missing
    assert "no answer" not in choose(cache).missing, "it is not waited for"


def test_the_shell_completes_versions_in_the_cache_that_is_named_and_the_words(cache: Path) -> None:
    programs = a_folder(cache / "kubernetes" / NEWER, NEWER)
    (programs / COMPLETE).touch()

    def offered(word: str) -> list[str]:
        words = {"COMP_WORDS": f"protokube up --kubernetes {word}".strip(), "COMP_CWORD": "3"}
        env = {"_PROTOKUBE_COMPLETE": "bash_complete", "PROTOKUBE_CACHE": str(cache), **words}
        return [line.partition(",")[2] for line in process(env=env).out.splitlines()]

    assert offered("") == [NEWER, "build", "none"]
    assert offered("b") == ["build"]
