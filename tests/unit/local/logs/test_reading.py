"""Files that are read while they are written, rotated, truncated and removed: each line once, in its order."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from protokube.local.base.logs import trim
from protokube.local.logs.lines import Entry
from protokube.local.logs.places import logs_of_host
from protokube.local.logs.reading import LogReader, last_lines

NOW = 2e9


def clock() -> float:
    return NOW


def read(entries: Iterable[Entry]) -> list[str]:
    return [each.text for each in entries]


def history(files: Sequence[Path], **wanted: Any) -> list[str]:
    with closing(LogReader(clock)) as reader:
        return read(reader.history(files, **wanted))


class Scene:
    """One host with one unit, as init writes its log, and one container, as kubelet and containerd do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unit = folder / "var/log/protokube.service.log"
        self.container = folder / "var/log/pods/kube-system_kube-apiserver-h1_0123/kube-apiserver/0.log"
        self.container.parent.mkdir(parents=True)

    def files(self, source: str) -> list[Path]:
        return logs_of_host(self.folder, "h1").get(source, [])


@given(st.lists(st.sampled_from(["line", "part", "trim", "look", "look"]), max_size=40))
def test_a_log_that_init_truncates_is_read_whole_and_once(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scene, reader, written, found = Scene(Path(folder)), LogReader(clock), "", []
        scene.unit.touch()
        found += read(reader.news(scene.files("agent")))
        seen = 0
        for number, step in enumerate(steps):
            if step in ("line", "part"):
                text = f"{number}" + ("\n" if step == "line" else "")
                with scene.unit.open("a") as file:
                    file.write(text)
                written += text
            elif step == "look" or seen:  # we look more often than 16 MiB are written
                if step == "trim":
                    trim(scene.unit, most=1)
                found += read(reader.news(scene.files("agent")))
                seen = scene.unit.stat().st_size
        found += read(reader.news(scene.files("agent"))) + read(reader.finish())

        assert "".join(found) == written.replace("\n", "")


@given(st.lists(st.sampled_from(["line", "rotate", "pack", "restart", "look"]), max_size=30))
def test_a_log_that_kubelet_rotates_is_read_whole_and_once(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scene, reader, written, found, restarts = Scene(Path(folder)), LogReader(clock), [], [], 0
        current = scene.container
        current.touch()
        for number, step in enumerate(steps):
            if step == "line":
                written.append(f"{number}")
                with current.open("a") as file:
                    file.write(f"2026-11-19T06:03:01Z stdout F {number}\n")
                os.utime(current, (number + 1, number + 1))
            elif step == "rotate":
                current.rename(current.with_name(f"{current.name}.20261119-0603{number:02}"))
                current.touch()
            elif step == "pack":  # kubelet keeps the last one for a while
                found += read(reader.news(scene.files("kube-apiserver")))
                for old in [each for each in current.parent.glob("*.log.*") if each.suffix != ".gz"]:
                    with gzip.open(old.with_name(f"{old.name}.gz"), "wb") as packed:
                        packed.write(old.read_bytes())
                    old.unlink()
            elif step == "restart":
                restarts += 1
                current = current.with_name(f"{restarts}.log")
                current.touch()
                os.utime(current, (number + 1, number + 1))
            else:
                found += read(reader.news(scene.files("kube-apiserver")))
        found += read(reader.news(scene.files("kube-apiserver"))) + read(reader.finish())

        assert sorted(found, key=int) == written
        assert len(found) == len(set(found))


@given(st.lists(st.text(alphabet="ab\u00e9", max_size=5)), st.booleans(), st.integers(0, 8))
def test_the_last_lines_begin_where_one_counts_to(lines: list[str], partial: bool, count: int) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    with tempfile.TemporaryFile() as file:
        file.write(data + (b"half" if partial else b""))
        size = file.seek(0, os.SEEK_END)

        start, found = last_lines(file, size, count)

        assert found == min(count, len(lines))
        wanted = "".join(f"{line}\n" for line in lines[len(lines) - found :]).encode()
        file.seek(start)
        assert file.read().removesuffix(b"half" if partial else b"") == wanted


def test_of_a_long_line_in_parts_the_last_one_is_the_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    stamp = "2026-11-19T06:03:01Z stdout"
    log.write_text(f"{stamp} F first\n{stamp} P long \n{stamp} P and \n{stamp} F longer\n")

    assert history([log], tail=1) == ["long and longer"]
    assert history([log], tail=2) == ["first", "long and longer"]


def test_history_goes_back_into_rotated_and_packed_files(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "0.log.1.gz", "wb") as packed:
        packed.write(b"1\n2\n")
    (tmp_path / "0.log.2").write_text("3\n4\n")
    (tmp_path / "0.log").write_text("5\n6\nhalf")
    files = [tmp_path / name for name in ("0.log.1.gz", "0.log.2", "0.log")]
    reader = LogReader(clock)

    assert read(reader.history(files)) == list("123456")
    assert history(files, tail=3) == list("456")
    assert read(reader.news(files)) == []
    assert read(reader.finish()) == ["half"]


def test_only_lines_of_the_wanted_time_are_given_and_news_come_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("2026-11-19T06:03:01Z old\nits trace\n2026-11-19T06:03:09Z new\n")
    reader = LogReader(clock)

    assert read(reader.history([log], since=1795068185.0)) == ["2026-11-19T06:03:09Z new"]
    with log.open("a") as file:
        file.write("more\n")
    assert read(reader.news([log])) == ["more"]
    reader.close()


def test_a_damaged_packed_file_gives_what_can_be_read_of_it(tmp_path: Path) -> None:
    packed = tmp_path / "0.log.1.gz"
    packed.write_bytes(gzip.compress(b"".join(b"%d\n" % each for each in range(90000)))[:-3000])

    assert history([packed])[:3] == ["0", "1", "2"]


def test_a_file_that_vanishes_is_read_to_its_end_and_a_new_one_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("1\n")
    reader = LogReader(clock)
    assert read(reader.history([log])) == ["1"]
    with log.open("a") as file:
        file.write("2\n3")
    log.unlink()

    assert read(reader.news([])) == ["2", "3"]
    log.write_text("4\n")
    assert read(reader.news([log])) == ["4"]
    reader.close()


def test_logs_of_a_host_are_found_under_the_names_of_what_writes_them(tmp_path: Path) -> None:
    for name in (
        "log/init.log", "var/log/protokube.service.log", "var/log/protokube.service.log.1",
        "var/log/kubelet.service.log",
        "var/log/dmesg", "var/log/pods/kube-system_etcd-server/etcd-container.log",
        "var/log/pods/kube-system_etcd-server-events/etcd-container.log",
        "var/log/pods/kube-system_etcd-server-h1_01234567/etcd-container/3.log",
        "var/log/pods/kube-system_coredns-5d4-x2_01234567/coredns/0.log",
        "var/log/pods/kube-system_coredns-5d4-x2_01234567/coredns/0.log.tmp",
        "var/log/pods/default_web_01234567/web/0.log",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    found = logs_of_host(tmp_path, "h1")

    assert {name: len(files) for name, files in found.items()} == {
        "agent": 2, "coredns": 1, "etcd": 2, "etcd-events": 1, "init": 1, "kubelet": 1,
    }  # fmt: skip
    shutil.rmtree(tmp_path / "var")
    assert list(logs_of_host(tmp_path, "h1")) == ["init"]
    assert logs_of_host(tmp_path / "never", "h1") == {}
