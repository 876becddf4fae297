"""The cloud-init document: what goes into which stage, and what is refused."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders.nodeup import DEBIAN
from builders.nodeup_image import every_kind
from protokube.errors import InvalidRequest
from protokube.nodeup.cloudinit.document import Stage, document, staged
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.order import order
from protokube.nodeup.values import Directory, File, Link, Mount, Packages, Task, Unit


def tree(*tasks: Task, facts: Facts = DEBIAN) -> Any:
    return yaml.safe_load(document(order(tasks), facts, cache="/cache"))


def test_what_cannot_be_expressed_is_refused_by_name_all_at_once() -> None:
    class Strange(Task):
        about = "thing"

    with pytest.raises(InvalidRequest, match="3 of the tasks cannot be expressed for cloud-init") as caught:
        tree(
            File(path="/key", content=b"SECRET", secret=True), Mount(device="/dev/b", path="/srv", format=True),
            File(path="/ok", content=b""), Strange(),
        )  # fmt: skip

    assert caught.value.saw == (
        "file /key: its content is secret, and launch data are not; "
        "mount /srv: nothing proves that the disk is blank before it is formatted; "
        "strange thing: only nodeup itself can do this"
    )
    assert "SECRET" not in str(caught.value)


def test_a_document_of_nothing_is_valid() -> None:
    assert tree() == {}


def test_files_that_need_only_directories_are_written_first_and_others_after_packages() -> None:
    packages = Packages(names=("containerd",))
    tasks = order(
        [
            Directory(path="/a"), File(path="/a/first", content=b""), packages,
            File(path="/a/after", content=b"", after=(packages.key,)), Link(path="/l", target="/a"),
            File(path="/l/x", content=b""), Unit(name="u.service", content=""),
            Directory(path="/b", after=(packages.key,)), File(path="/b/x", content=b""),
        ]
    )  # fmt: skip

    assert {task.key: stage for task in tasks.tasks if (stage := staged(tasks)[task.key]) is not Stage.SCRIPT} == {
        "file /a/first": Stage.FILES, "packages containerd": Stage.PACKAGES, "file /a/after": Stage.DEFERRED,
        "unit u.service": Stage.FILES, "file /b/x": Stage.DEFERRED,
    }  # fmt: skip


def test_no_package_starts_a_service_on_debian_and_versions_are_held() -> None:
    debian = tree(Packages(names=("containerd=1.6.20~ds1", "runc")))
    fedora = tree(Packages(names=("containerd",)), facts=Facts(distribution="f", distribution_version="",
                                                             package_manager=PackageManager.DNF))  # fmt: skip

    assert debian["write_files"][0]["path"] == "/usr/sbin/policy-rc.d"
    assert debian["runcmd"][0][2].splitlines() == ["rm -f /usr/sbin/policy-rc.d", "apt-mark hold containerd runc"]
    assert debian["packages"] == [["containerd", "1.6.20~ds1"], "runc"]
    assert "write_files" not in fedora
    assert fedora["runcmd"][0][2] == "dnf versionlock add containerd\n"


names = st.sampled_from(["/a", "/a/b", "/a/b/c", "/d", "/d/e"])


@given(
    paths=st.lists(names, unique=True, min_size=1), content=st.binary(max_size=40),
    edges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8),
)  # fmt: skip
def test_every_file_is_in_the_document_once_and_after_what_it_needs(
    paths: Sequence[str], content: bytes, edges: Sequence[tuple[int, int]]
) -> None:
    tasks: list[Task] = [Packages(names=("p",))]
    for number, path in enumerate(sorted(paths)):
        after = tuple({tasks[b].key for a, b in edges if a == number and b < len(tasks)})
        leaf = not any(other.startswith(f"{path}/") for other in paths)
        tasks.append(File(path=path, content=content, after=after) if leaf else Directory(path=path, after=after))
    graph = order(tasks)
    stages = staged(graph)

    for task in graph.tasks:
        for need in graph.needs[task.key]:
            if not need.startswith("directory "):
                assert stages[need] <= stages[task.key]
    found = tree(*tasks)
    written = {each["path"]: each for each in found.get("write_files", []) if each["path"] in paths}
    for task in tasks:
        if isinstance(task, File):
            if stages[task.key] is Stage.SCRIPT:
                assert base64.b64encode(content).decode() in found["runcmd"][0][2]
            else:
                assert base64.b64decode(written[task.path]["content"]) == content


def test_equal_tasks_give_an_equal_document_that_yaml_reads() -> None:
    texts = {document(order(every_kind()), DEBIAN, cache="/c") for _ in range(3)}

    assert len(texts) == 1
    assert yaml.safe_load(texts.pop())["users"][0] == "default"
