"""The child's program: it starts fast, knows its jobs, and runs the system's tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusters.disks import UUID, an_image
from protokube.host.child import run as program
from protokube.host.child import tools, work
from protokube.host.child.claim import Refusal
from protokube.host.jobs import COMMAND

HEAVY = {"dataclasses", "subprocess", "inspect", "asyncio", "logging", "socket", "protokube.errors"}


def a_request(job: str, path: Path, **more: Any) -> dict[str, Any]:
    about = {"path": str(path), "number": [7, 999], "size": 512, "serial": None, "parent": os.getpid()}
    return {"job": job, **about, "uuid": UUID, "again": False, "point": str(path.parent / "point"), **more}


def output_of(*command: str) -> dict[str, Any]:
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert isinstance(answer, dict)
    return answer


def test_the_program_answers_by_itself(tmp_path: Path) -> None:
    image = an_image(tmp_path, size=65536)

    answer = output_of(*COMMAND, json.dumps(a_request("probe", image)))

    assert answer == {"failed": f"{image} is not a block device"}


def test_the_program_answers_on_a_machine_whose_environment_is_broken(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    ran = subprocess.run(
        [*COMMAND, json.dumps(a_request("nonsense", tmp_path))],
        capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"},
    )  # fmt: skip

    assert json.loads(ran.stdout) == {"failed": "there is no job 'nonsense'"}


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    show = "import sys, runpy; sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__');"
    show += "print(sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", show, program.__file__, json.dumps(a_request("nonsense", tmp_path))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules = set(eval(ran.stdout.splitlines()[-1]))

    assert "protokube.host.child.work" in modules
    assert not HEAVY & modules


@pytest.mark.parametrize("job", ["probe", "format", "mount"])
def test_no_job_touches_what_is_not_a_block_device(tmp_path: Path, job: str) -> None:
    image = an_image(tmp_path, size=65536)
    before = image.read_bytes()

    answer = work.answer(a_request(job, image))

    assert answer == {"failed": f"{image} is not a block device"}
    assert image.read_bytes() == before
    assert not (tmp_path / "point").exists()


@pytest.mark.parametrize("job", ["probe", "format", "mount"])
def test_a_device_that_is_not_there_is_told(tmp_path: Path, job: str) -> None:
    answer = work.answer(a_request(job, tmp_path / "missing"))

    assert answer == {"failed": f"{tmp_path}/missing cannot be opened: No such file or directory"}


@pytest.mark.parametrize("job", ["probe", "format", "mount"])
def test_a_link_is_not_followed(tmp_path: Path, job: str) -> None:
    (tmp_path / "link").symlink_to("/dev/vda")

    assert work.answer(a_request(job, tmp_path / "link")) == {"failed": f"{tmp_path}/link is not a block device"}


def test_unmounting_what_is_not_mounted_is_done(tmp_path: Path) -> None:
    request = {"job": "unmount", "point": str(tmp_path), "number": [250, 99999]}

    assert work.answer(request) == {"done": True}


def test_the_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work.main(json.dumps(a_request("nonsense", tmp_path)))

    assert capsys.readouterr().out == '{"failed": "there is no job \'nonsense\'"}\n'


def test_a_tool_says_how_it_ended_and_what_it_said() -> None:
    assert tools.run("sh", "-c", "echo out; echo err >&2; exit 3") == (3, "out\nerr")


def test_a_tool_that_was_killed_says_by_what() -> None:
    assert tools.run("sh", "-c", "kill -9 $$") == (-9, "")


def test_only_the_end_of_a_long_tale_is_kept() -> None:
    status, output = tools.run("sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done")

    assert status == 0
    assert output.endswith("line 1999")
    assert len(output) <= tools.MOST


def test_a_tool_that_is_not_installed_is_told() -> None:
    with pytest.raises(Refusal, match=r"mkfs\.missing is needed and not installed"):
        tools.run("mkfs.missing")


def test_a_tool_gets_a_small_and_fixed_environment() -> None:
    assert tools.run("sh", "-c", "echo $PATH $LC_ALL $HOME") == (0, "/usr/sbin:/usr/bin:/sbin:/bin C")


def test_a_tool_leaves_no_handle_open() -> None:
    before = sorted(Path("/proc/self/fd").iterdir())

    tools.run("true")

    assert len(sorted(Path("/proc/self/fd").iterdir())) == len(before)
