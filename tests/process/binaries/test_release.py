"""Downloads from real servers on loopback that cut, lie, lack things or are not there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from fakes.mirror import VERSION, Mirror, dead_url, get_kubernetes, program, release, serving
from protokube.binaries.download import Unreachable
from protokube.binaries.kubernetes import PROGRAMS, find
from protokube.binaries.mirrors import architecture, digest_at
from protokube.binaries.product import COMPLETE, Release
from protokube.binaries.progress import Silent
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater


class Serve(Protocol):
    def __call__(self, mirror: Mirror) -> Mirror: ...


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as running:
        yield lambda mirror: running.enter_context(serving(mirror))


def place(name: str, version: str = VERSION) -> str:
    return f"/v{version}/bin/linux/{architecture('Kubernetes')}/{name}"


def whole(got: Release, cache: Path) -> bool:
    """Everything is there, byte by byte, may be executed, and nothing is left beside it."""
    return (
        got.folder == cache / "kubernetes" / VERSION
        and sorted(each.name for each in got.folder.iterdir()) == sorted([*PROGRAMS, COMPLETE])
        and all(path.read_bytes() == program(name) for name, path in got.programs.items())
        and all(path.stat().st_mode & 0o777 == 0o755 for path in got.programs.values())
        and sorted(each.name for each in got.folder.parent.iterdir()) == [".lock", VERSION]
        and find(VERSION, cache) == got
    )


def refused(cache: Path, *mirrors: str) -> ProtokubeError:
    """What is told when it cannot be got; then the cache offers nothing."""
    with pytest.raises(ProtokubeError) as raised:
        get_kubernetes(VERSION, cache, mirrors=mirrors)
    assert find(None, cache) is None
    assert not (cache / "kubernetes" / VERSION).exists()
    return raised.value


def test_a_version_is_got_whole_and_asked_for_once(tmp_path: Path, serve: Serve) -> None:
    mirror = serve(Mirror())

    got = get_kubernetes(f"v{VERSION}", tmp_path, mirrors=[f"{mirror.url}/"])

    assert whole(got, tmp_path)
    assert all(mirror.asked_for(name) == [""] for name in PROGRAMS)


def test_what_is_in_the_cache_is_not_downloaded_again(tmp_path: Path, serve: Serve) -> None:
    mirror = serve(Mirror())
    first = get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url])
    mirror.asked.clear()

    assert get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url]) == first
    assert get_kubernetes(VERSION, tmp_path, mirrors=[dead_url()]) == first
    assert mirror.asked == []


def test_a_version_in_the_cache_that_lost_a_program_is_got_anew(tmp_path: Path, serve: Serve) -> None:
    mirror = serve(Mirror())
    (get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url]).folder / "kubelet").unlink()

    assert whole(get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url]), tmp_path)


# --- connections that end early


def test_a_connection_cut_again_and_again_goes_on_where_it_was(tmp_path: Path, serve: Serve) -> None:
    mirror = serve(Mirror(at_most=15_000))

    got = get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url])

    assert whole(got, tmp_path)
    assert mirror.asked_for("kubelet") == ["", "bytes=15000-", "bytes=30000-"]


def test_a_link_that_is_cut_again_and_again_finishes_as_long_as_it_brings_some_more(
    tmp_path: Path, serve: Serve
) -> None:
    large = program("kubelet", size=3_000_000)
    sums = {f"{place('kubelet')}.sha256": hashlib.sha256(large).hexdigest().encode()}
    mirror = serve(Mirror(files={**release(), place("kubelet"): large, **sums}, at_most=70_000))

    got = get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url])

    assert got.programs["kubelet"].read_bytes() == large
    assert len(mirror.asked_for("kubelet")) == 43


def test_a_mirror_that_cuts_and_knows_no_ranges_is_left_for_the_next(tmp_path: Path, serve: Serve) -> None:
    poor, good = serve(Mirror(at_most=15_000, ranges=False)), serve(Mirror())

    got = get_kubernetes(VERSION, tmp_path, mirrors=[poor.url, good.url])

    assert whole(got, tmp_path)
    assert good.asked_for(PROGRAMS[0]) == ["bytes=15000-"]


def test_a_mirror_without_ranges_sends_all_of_it_and_that_is_right_too(tmp_path: Path, serve: Serve) -> None:
    cutting = serve(Mirror(at_most=15_000, ranges=False))
    assert isinstance(refused(tmp_path, cutting.url), TryLater)

    assert whole(get_kubernetes(VERSION, tmp_path, mirrors=[serve(Mirror(ranges=False)).url]), tmp_path)


def test_a_later_call_goes_on_with_what_an_earlier_one_left(tmp_path: Path, serve: Serve) -> None:
    poor = serve(Mirror(at_most=15_000, ranges=False))
    error = refused(tmp_path, poor.url)
    good = serve(Mirror())

    assert "ended after 15000 of 40000 bytes" in error.saw
    assert whole(get_kubernetes(VERSION, tmp_path, mirrors=[good.url]), tmp_path)
    assert good.asked_for(PROGRAMS[0]) == ["bytes=15000-"]


def test_the_beginning_of_something_else_is_thrown_away(tmp_path: Path, serve: Serve) -> None:
    draft = tmp_path / "kubernetes" / f".{VERSION}.draft"
    draft.mkdir(parents=True)
    (draft / "kubelet.part").write_bytes(b"x" * 10_000)
    (draft / "kubectl.part").write_bytes(b"x" * 40_000)
    mirror = serve(Mirror())

    assert whole(get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url]), tmp_path)
    assert mirror.asked_for("kubelet") == ["bytes=10000-", ""]
    assert mirror.asked_for("kubectl") == ["bytes=40000-", ""]


def test_a_program_that_had_arrived_whole_is_not_fetched_again(tmp_path: Path, serve: Serve) -> None:
    draft = tmp_path / "kubernetes" / f".{VERSION}.draft"
    draft.mkdir(parents=True)
    (draft / "kubelet").write_bytes(program("kubelet"))
    (draft / "kubectl.part").write_bytes(program("kubectl"))
    mirror = serve(Mirror())

    assert whole(get_kubernetes(VERSION, tmp_path, mirrors=[mirror.url]), tmp_path)
    assert mirror.asked_for("kubelet") == []
    assert mirror.asked_for("kubectl") == ["bytes=40000-"]


# --- wrong content


def lying(name: str) -> Mirror:
    return Mirror(files={**release(), place(name): program(name, "6.6.6")})


@pytest.mark.parametrize("name", [PROGRAMS[0], PROGRAMS[-1]])
def test_a_program_with_another_checksum_is_refused_and_nothing_of_it_is_kept(
    tmp_path: Path, serve: Serve, name: str
) -> None:
    error = refused(tmp_path, serve(lying(name)).url)

    assert isinstance(error, Refused)
    assert error.message == f"{name} {VERSION} is not what its checksum promises"
    assert hashlib.sha256(program(name)).hexdigest() in error.saw
    assert hashlib.sha256(program(name, "6.6.6")).hexdigest() in error.saw
    assert "--from" in error.hint
    assert not list(tmp_path.rglob(f"{name}*"))


def test_a_mirror_that_lies_is_left_for_one_that_does_not(tmp_path: Path, serve: Serve) -> None:
    bad, good = serve(lying("kubelet")), serve(Mirror())

    assert whole(get_kubernetes(VERSION, tmp_path, mirrors=[bad.url, good.url]), tmp_path)
    assert (bad.asked_for("kube-scheduler"), good.asked_for("kube-scheduler")) == ([""], [])
    assert (bad.asked_for("kubectl"), good.asked_for("kubectl")) == ([], [""])


def test_a_page_in_place_of_a_checksum_is_no_checksum(tmp_path: Path, serve: Serve) -> None:
    files = {**release(), f"{place(PROGRAMS[0])}.sha256": b"<html>please log in</html>"}
    error = refused(tmp_path, serve(Mirror(files=files)).url)

    assert isinstance(error, TryLater)
    assert "please log in" in error.saw


def test_programs_of_another_version_under_the_name_of_this_one_are_refused(tmp_path: Path, serve: Serve) -> None:
    other = release("1.33.9")
    files = {path.replace("1.33.9", VERSION): data for path, data in other.items()}
    error = refused(tmp_path, serve(Mirror(files=files)).url)

    assert isinstance(error, Refused)
    assert error.saw == "kube-apiserver says 1.33.9"
    assert not list(tmp_path.rglob("kube*-*"))


# --- mirrors and versions that are not there


def test_a_dead_mirror_is_left_for_the_next_and_asked_no_more(tmp_path: Path, serve: Serve) -> None:
    lines: list[str] = []

    class Listening(Silent):
        def say(self, text: str) -> None:
            lines.append(text)

    dead, good = dead_url(), serve(Mirror())

    assert whole(get_kubernetes(VERSION, tmp_path, mirrors=[dead, good.url], progress=Listening()), tmp_path)
    assert sum(f"{dead}: " in line for line in lines) == 1
    assert lines.count(f"kubelet from {good.url}: 0 of 0 MB, 100 %") == 1


def test_without_any_mirror_that_answers_the_other_ways_are_told(tmp_path: Path) -> None:
    one, two = dead_url(0), dead_url(1)
    error = refused(tmp_path, one, two)

    assert isinstance(error, TryLater)
    assert error.message == f"cannot download kube-apiserver {VERSION}"
    assert one in error.saw
    assert two in error.saw
    for way in ("--from", "--mirror", "PROTOKUBE_KUBERNETES_BIN", "--build"):
        assert way in error.hint


def test_a_version_nobody_has_is_told_with_the_newest_of_its_series(tmp_path: Path, serve: Serve) -> None:
    files = {"/stable-1.34.txt": b"v1.34.0\n", "/stable.txt": b"v1.35.0\n"}
    error = refused(tmp_path, serve(Mirror(files=files)).url)

    assert isinstance(error, InvalidRequest)
    assert error.message == f"there is no kube-apiserver of Kubernetes {VERSION}"
    assert error.hint == "did you mean 1.34.0, the newest of 1.34?"
    assert [each.name for each in (tmp_path / "kubernetes").iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"/stable.txt": b"v1.35.0"}, "did you mean 1.35.0, the newest?"),
        ({"/stable.txt": b"<html>"}, "check the version"),
        ({}, "check the version"),
    ],
)
def test_a_series_nobody_has_is_told_with_what_there_is(
    tmp_path: Path, serve: Serve, files: dict[str, bytes], hint: str
) -> None:
    assert refused(tmp_path, serve(Mirror(files=files)).url).hint == hint


def test_a_version_that_only_the_mirror_that_is_down_may_have_is_worth_another_try(
    tmp_path: Path, serve: Serve
) -> None:
    assert isinstance(refused(tmp_path, serve(Mirror(files={})).url, dead_url()), TryLater)


@pytest.mark.parametrize("url", ["/media/usb", "file:///media/usb", "https://", "ftp://host/x", "http://[", ""])
def test_what_is_no_url_of_a_mirror_is_told_so(tmp_path: Path, url: str) -> None:
    error = refused(tmp_path, url)

    assert isinstance(error, InvalidRequest)
    assert "--from" in error.hint


@pytest.mark.parametrize("content", [f"{'a' * 64}  runc.arm64\n{'b' * 64}  runc.s390x\n", "<html>", ""])
def test_a_list_of_other_files_holds_no_checksum_of_ours(serve: Serve, content: str) -> None:
    sums = serve(Mirror(files={"/runc.sha256sum": content.encode()}))

    for name in ("runc.amd64", ""):
        with pytest.raises(Unreachable, match="holds no checksum"):
            digest_at(f"{sums.url}/runc.sha256sum", name)
