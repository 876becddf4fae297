"""Requests to a child and its results, valid or not."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.disks import UUID, wait_until
from protokube.host import Block, Content, Done, Failed, Format, Job, MountVolume, Probe, Probed, Unmount
from protokube.host.jobs import MOST, Child, request, result

steady = settings(derandomize=True, deadline=None)

BLOCK = Block(path=Path("/dev/nvme1n1"), number=(259, 1), size=1 << 30, serial="vol-1")
ABOUT = {"path": "/dev/nvme1n1", "number": (259, 1), "size": 1 << 30, "serial": "vol-1"}
POINT = Path("/mnt/master-vol-1")
PROBE = Probe(block=BLOCK)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (PROBE, {"job": "probe", **ABOUT}),
        (Format(block=BLOCK, uuid=UUID), {"job": "format", "uuid": UUID, "again": False, **ABOUT}),
        (Format(block=BLOCK, uuid=UUID, again=True), {"job": "format", "uuid": UUID, "again": True, **ABOUT}),
        (MountVolume(block=BLOCK, point=POINT), {"job": "mount", "point": str(POINT), **ABOUT}),
    ],
)
def test_a_job_is_told_with_all_that_the_child_has_to_check(job: Job, expected: dict[str, object]) -> None:
    assert request(job) == {**expected, "parent": os.getpid()}
    json.dumps(request(job))


def test_an_unmount_is_told_by_point_and_number() -> None:
    sent = request(Unmount(point=POINT, number=(259, 1)))

    assert sent == {"job": "unmount", "point": str(POINT), "number": (259, 1)}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ('{"done": true}\n', Done()),
        ('{"failed": "not blank"}\n', Failed("not blank")),
        ('a warning\n{"done": true}\n', Done()),
        ('{"content": "blank", "told": "zero", "uuid": null}', Probed(content=Content.BLANK, description="zero")),
        (
            f'{{"content": "ext4", "told": "an ext4", "uuid": "{UUID}"}}',
            Probed(content=Content.EXT4, description="an ext4", uuid=UUID),
        ),
    ],
)
def test_an_answer_is_understood(output: str, expected: object) -> None:
    assert result(output, 0) == expected


@pytest.mark.parametrize(
    "output",
    ["", "\n", "nonsense", "[]", "null", "{}", '{"content": "empty"}', '{"content": "wiped", "told": "", "uuid": null}',
     '{"done": true}\nTraceback', '{"content": "blank"}'],
)  # fmt: skip
def test_an_answer_that_is_not_understood_is_a_failure(output: str) -> None:
    found = result(output, 0)

    assert isinstance(found, Failed)
    assert found.why.startswith("the child ended with 0: ")


@pytest.mark.parametrize("output", ['{"done": true}', '{"content": "blank", "told": "", "uuid": null}', "Traceback"])
def test_whatever_a_child_said_it_has_failed_unless_it_ended_well(output: str) -> None:
    assert result(output, 1) == Failed(f"the child ended with 1: {output}")
    assert result(output, -9) == Failed(f"the child was killed by signal 9: {output}")


def test_a_child_that_said_nothing_is_told_so() -> None:
    assert result("", -9) == Failed("the child was killed by signal 9: it said nothing")


@steady
@given(output=st.text(), status=st.integers(-15, 3))
def test_no_answer_makes_it_fall_over(output: str, status: int) -> None:
    assert isinstance(result(output, status), Failed)


def child(script: str) -> Child:
    return Child(PROBE, clock=time.monotonic, command=("sh", "-c", script))


def ended(one: Child) -> object:
    wait_until(lambda: one.result is not None, "it does not end")
    return one.result


def test_a_child_gets_the_job_and_its_answer_is_kept() -> None:
    one = child("""test "$0" = '' || echo '{"failed": "'$(echo "$0" | cut -c 1-16 | tr -d '"')'"}'""")

    assert ended(one) == Failed("{job: probe,")


def test_a_child_reads_nothing_and_stands_in_the_root() -> None:
    one = child("""read x; echo '{"failed": "'$(pwd) $? $HOME $LC_ALL'"}'""")

    assert ended(one) == Failed("/ 1 C")


def test_what_a_child_complains_about_is_part_of_what_it_said() -> None:
    assert ended(child("echo Traceback >&2; exit 1")) == Failed("the child ended with 1: Traceback")


def test_only_the_end_of_what_a_child_says_is_kept() -> None:
    one = child(f"head -c {3 * MOST} /dev/zero | tr '\\0' x; echo; echo '{{\"done\": true}}'")

    assert ended(one) == Done()


def test_a_child_leads_a_session_of_its_own() -> None:
    one = child("sleep 60")

    assert os.getsid(one.pid) == one.pid
    one.kill()
    ended(one)


def test_a_killed_child_takes_what_it_started_with_it(tmp_path: Path) -> None:
    one = child(f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "it does not start")
    started = int((tmp_path / "pid").read_text())

    one.kill()

    assert ended(one) == Failed("the child was killed by signal 9: it said nothing")
    wait_until(lambda: not Path(f"/proc/{started}").exists() or is_dead(started), "it lives on")


def is_dead(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def test_a_child_has_not_ended_while_something_it_started_runs(tmp_path: Path) -> None:
    """A program that outlives the child still has the device: only its end is the end."""
    go = tmp_path / "go"
    one = child(f"(until test -e {go}; do sleep 0.02; done) & exit 0")

    wait_until(lambda: is_dead(one.pid), "it does not end")
    time.sleep(0.2)
    assert one.result is None

    go.touch()
    ended(one)


def test_killing_a_child_that_has_ended_does_nothing() -> None:
    one = child("""echo '{"done": true}'""")
    ended(one)

    one.kill()

    assert one.killed is None
    assert one.result == Done()


def test_whoever_waits_is_told_after_the_result_is_there() -> None:
    seen: list[object] = []
    done = threading.Event()

    def on_done() -> None:
        seen.append(one.result)
        done.set()

    one = Child(PROBE, clock=time.monotonic, on_done=on_done, command=("sh", "-c", "sleep 0.05; echo '{\"done\": 1}'"))

    assert done.wait(10)
    assert seen == [Done()]


def test_a_child_that_ended_is_collected() -> None:
    one = child("exit 0")
    ended(one)

    wait_until(lambda: not Path(f"/proc/{one.pid}").exists(), "it is left as a zombie", seconds=5)
