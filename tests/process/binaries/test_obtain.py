"""Getting Kubernetes from a folder, by two at once, and by one that is killed."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from builders.command import environment
from clusters.daemon import until
from fakes.mirror import VERSION, Mirror, a_folder, get_kubernetes, program, serving
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS, find
from protokube.binaries.product import COMPLETE
from protokube.errors import InvalidRequest, Refused


def getting(cache: Path, mirror: str) -> subprocess.Popen[bytes]:
    """The command, as a process that can be killed."""
    arguments = ["get", "kubernetes", VERSION, "--cache", str(cache), "--mirror", mirror]
    return subprocess.Popen(
        [sys.executable, "-m", "protokube", *arguments],
        env=environment(no_proxy="127.0.0.1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def is_at_the_lock(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has it, or waits for it."""
    try:
        return any(each.readlink().name == ".lock" for each in Path(f"/proc/{process.pid}/fd").iterdir())
    except FileNotFoundError:  # a file that it closed meanwhile
        return False


def parts(cache: Path) -> list[Path]:
    return [each for each in cache.rglob("*.part") if each.stat().st_size]


def test_one_that_is_killed_in_the_middle_leaves_nothing_that_is_found_and_the_next_goes_on(tmp_path: Path) -> None:
    with serving(Mirror(at_most=15_000, holding=threading.Event())) as slow:
        killed = getting(tmp_path, slow.url)
        until(lambda: parts(tmp_path))
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    assert find(None, tmp_path) is None
    (part,) = parts(tmp_path)
    had = part.stat().st_size

    with serving(Mirror()) as good:
        got = get_kubernetes(VERSION, tmp_path, mirrors=[good.url])

    assert good.asked_for(part.name.removesuffix(".part")) == [f"bytes={had}-"]
    assert all(path.read_bytes() == program(name) for name, path in got.programs.items())
    assert parts(tmp_path) == []


def test_one_that_is_killed_with_its_last_file_leaves_nothing_that_is_found(tmp_path: Path) -> None:
    """All programs but one are whole; that is still not Kubernetes."""
    files = Mirror().files
    short = {path: data for path, data in files.items() if not path.endswith(f"/{PROGRAMS[-1]}")}
    with serving(Mirror(files=short)) as lacking, pytest.raises(InvalidRequest):
        get_kubernetes(VERSION, tmp_path, mirrors=[lacking.url])
    assert len(list(tmp_path.rglob("kube*"))) >= len(PROGRAMS) - 1
    assert find(None, tmp_path) is None

    with serving(Mirror()) as good:
        get_kubernetes(VERSION, tmp_path, mirrors=[good.url])
    assert [name for name in PROGRAMS if good.asked_for(name)] == [PROGRAMS[-1]]


def test_two_at_once_download_once(tmp_path: Path) -> None:
    holding = threading.Event()
    with serving(Mirror(at_most=15_000, holding=holding)) as mirror:
        two = [getting(tmp_path, mirror.url) for _ in range(2)]
        until(lambda: parts(tmp_path))
        until(lambda: all(is_at_the_lock(each) for each in two))
        holding.set()
        output = [each.communicate(timeout=60)[0] for each in two]

    assert [each.returncode for each in two] == [0, 0]
    assert set(output) == {f"Kubernetes {VERSION} is in {tmp_path}/kubernetes/{VERSION}\n".encode()}
    assert mirror.asked_for("kubelet.sha256") == [""]


# --- from a folder


def test_an_offline_folder_is_copied_whole(tmp_path: Path) -> None:
    source = a_folder(tmp_path / "usb")
    (source / "kubeadm").write_text("not asked for")

    got = get_kubernetes(VERSION, tmp_path / "cache", folder=source)

    assert sorted(each.name for each in got.folder.iterdir()) == sorted([*PROGRAMS, COMPLETE])
    assert all(path.read_bytes() == program(name) for name, path in got.programs.items())
    assert find(None, tmp_path / "cache") == got


def test_without_a_version_it_is_the_one_the_folder_holds(tmp_path: Path) -> None:
    assert get_kubernetes(None, tmp_path / "cache", folder=a_folder(tmp_path / "usb", "1.33.4")).version == "1.33.4"
    assert get_kubernetes(None, tmp_path / "cache", folder=a_folder(tmp_path / "old", "1.32.1")).version == "1.32.1"
    assert get_kubernetes(None, tmp_path / "cache").version == "1.33.4"


def test_a_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"holds Kubernetes 1\.33\.4"):
        get_kubernetes(VERSION, tmp_path / "cache", folder=a_folder(tmp_path / "usb", "1.33.4"))
    assert find(None, tmp_path / "cache") is None


def test_a_folder_that_lacks_programs_is_refused_with_their_names(tmp_path: Path) -> None:
    source = a_folder(tmp_path / "usb", names=PROGRAMS[1:-1])

    with pytest.raises(InvalidRequest, match=f"there is no {PROGRAMS[0]}, no {PROGRAMS[-1]} in {source}"):
        get_kubernetes(VERSION, tmp_path / "cache", folder=source)


@pytest.mark.parametrize("form", ["{}", "{}  kubelet\n", "{}\n"])
def test_a_checksum_beside_a_program_is_looked_at(tmp_path: Path, form: str) -> None:
    source = a_folder(tmp_path / "usb")
    right = hashlib.sha256(program("kubelet")).hexdigest()
    (source / "kubelet.sha256").write_text(form.format("0" * 64))

    with pytest.raises(Refused, match="kubelet is not what its checksum promises") as wrong:
        get_kubernetes(VERSION, tmp_path / "cache", folder=source)
    assert right in wrong.value.saw
    assert find(None, tmp_path / "cache") is None

    (source / "kubelet.sha256").write_text(form.format(right.upper()))
    assert get_kubernetes(VERSION, tmp_path / "cache", folder=source).version == VERSION


# --- the order


def test_the_users_own_folder_wins_over_every_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = a_folder(tmp_path / "own")
    monkeypatch.setenv(KUBERNETES.chosen, str(own))

    assert get_kubernetes(VERSION, tmp_path / "cache", folder=a_folder(tmp_path / "usb")).folder == own
    assert not (tmp_path / "cache").exists()


def test_what_the_cache_has_is_not_copied_again(tmp_path: Path) -> None:
    first = get_kubernetes(VERSION, tmp_path / "cache", folder=a_folder(tmp_path / "usb"))

    assert get_kubernetes(VERSION, tmp_path / "cache", folder=tmp_path / "gone") == first
    assert get_kubernetes(VERSION, tmp_path / "cache", build=True) == first


def test_two_ways_at_once_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="--from, --mirror and --build exclude each other"):
        get_kubernetes(VERSION, tmp_path, folder=tmp_path, build=True)


def test_nothing_asked_for_and_nothing_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="there is no Kubernetes in") as wrong:
        get_kubernetes(None, tmp_path)
    assert "name a version" in wrong.value.hint


def test_a_cache_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(Refused, match="cannot keep Kubernetes in") as raised:
        get_kubernetes(VERSION, tmp_path / "cache", folder=a_folder(tmp_path / "usb"))
    assert "Not a directory" in raised.value.saw
    assert "--cache" in raised.value.hint
    assert "PROTOKUBE_CACHE" in raised.value.hint, "`up` has no such option"
