"""Where the output of a static pod lies, with a kubelet and with the local cloud's pod runner."""

from __future__ import annotations

import os
from pathlib import Path

from protokube.host.podlogs import MOST, lines, newest

UID = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"


def written(path: Path, text: str, at: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def found(folder: Path, pod: str = "etcd-server") -> list[Path]:
    others = ["etcd-server", "etcd-server-events"]
    return [each.path for each in newest(folder, "kube-system", pod, "etcd-container", others)]


def test_of_a_kubelet_the_newest_two_files_count_whatever_pod_they_are_of(tmp_path: Path) -> None:
    former = tmp_path / f"kube-system_etcd-server-node-1_{OTHER}" / "etcd-container"
    current = tmp_path / f"kube-system_etcd-server-node-1_{UID}" / "etcd-container"
    written(former / "7.log", "x", 1)
    first, second = written(current / "0.log", "x", 2), written(current / "1.log", "x", 3)

    assert found(tmp_path) == [first, second]


def test_the_pod_of_another_etcd_cluster_is_not_taken_for_a_node_with_a_long_name(tmp_path: Path) -> None:
    events = written(tmp_path / f"kube-system_etcd-server-events-node-1_{UID}" / "etcd-container" / "0.log", "x", 2)
    main = written(tmp_path / f"kube-system_etcd-server-node-1_{OTHER}" / "etcd-container" / "0.log", "x", 1)

    assert found(tmp_path) == [main]
    assert found(tmp_path, "etcd-server-events") == [events]


def test_of_the_pod_runner_the_file_and_the_one_before_it_count(tmp_path: Path) -> None:
    folder = tmp_path / "kube-system_etcd-server"
    before = written(folder / "etcd-container.log.1", "x", 1)
    now = written(folder / "etcd-container.log", "x", 2)
    written(tmp_path / "kube-system_etcd-server-events" / "etcd-container.log", "x", 3)
    written(tmp_path / "default_etcd-server" / "etcd-container.log", "x", 3)

    assert found(tmp_path) == [before, now]


def test_without_any_output_there_is_none(tmp_path: Path) -> None:
    assert found(tmp_path / "none") == []
    (tmp_path / "kube-system_etcd-server").mkdir()
    assert found(tmp_path) == []


def test_only_the_end_of_a_file_is_read_and_no_half_line(tmp_path: Path) -> None:
    folder = tmp_path / "kube-system_etcd-server"
    written(folder / "etcd-container.log", "y" * MOST + "\n" + "first\nlast\n", 1)
    (file,) = newest(tmp_path, "kube-system", "etcd-server", "etcd-container")

    assert list(lines(file)) == ["first", "last", ""]


def test_a_file_in_which_something_was_written_is_another_value(tmp_path: Path) -> None:
    path = written(tmp_path / "kube-system_etcd-server" / "etcd-container.log", "x\n", 1)
    before = newest(tmp_path, "kube-system", "etcd-server", "etcd-container")
    assert newest(tmp_path, "kube-system", "etcd-server", "etcd-container") == before
    written(path, "x\ny\n", 1)
    assert newest(tmp_path, "kube-system", "etcd-server", "etcd-container") != before
