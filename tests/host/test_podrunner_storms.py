"""The runner of static pods under changes faster than it can follow: it may be late, it may not be wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clusters.hosts import Cloud, Host, a_cloud, a_loop_device, a_pod, a_volume, at, eventually, is_mounted_anywhere
from clusters.pod_runner import Runner, a_long_time, a_runner, sleepers
from protokube.local.host import hosts
from protokube.local.pods.pods import read_pod


@pytest.fixture
def runner() -> Iterator[Runner]:
    with a_runner() as made:
        eventually(made.told)
        yield made


def digests(runner: Runner) -> dict[str, str]:
    return {key: pod["digest"] for key, pod in runner.told()["pods"].items() if not pod["stopping"]}


def test_twenty_pods_start_and_stop_together(runner: Runner) -> None:
    long = a_long_time(11)
    for number in range(20):
        runner.write(a_pod(f"one-{number}", ["sleep", long]))
    eventually(lambda: len(sleepers(long)) == 20, seconds=30)
    eventually(lambda: len(runner.told()["pods"]) == 20)
    for file in runner.manifests.glob("one-*"):
        file.unlink()
    eventually(lambda: runner.told()["pods"] == {}, seconds=30)
    assert sleepers(long) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_was_written_in_between_the_last_word_counts(runner: Runner, seed: int) -> None:
    dice, long = random.Random(seed), a_long_time(20 + seed)
    for _ in range(60):
        file = runner.manifests / f"{dice.choice('abc')}.json"
        match dice.randrange(4):
            case 0:
                file.unlink(missing_ok=True)
            case 1:
                file.write_text("{ broken")
            case _:
                pod = a_pod(file.stem, ["sleep", long], env=[{"name": "N", "value": str(dice.randrange(3))}])
                runner.write(pod)
        time.sleep(dice.choice((0, 0, 0.01, 0.05)))
    wanted = {}
    for name in "abc":
        pod = a_pod(name, ["sleep", long], env=[{"name": "LAST", "value": str(dice.randrange(3))}])
        runner.write(pod)
        wanted[f"default/{name}"] = read_pod(json.dumps(pod)).digest
    (runner.manifests / "c.json").unlink()
    del wanted["default/c"]
    eventually(lambda: digests(runner) == wanted and set(runner.told()["pods"]) == set(wanted), seconds=30)
    eventually(lambda: len(sleepers(long)) == 2)


def test_a_folder_of_manifests_that_is_replaced_is_followed(runner: Runner) -> None:
    runner.write(a_pod("old"))
    runner.runs("old")
    shutil.rmtree(runner.manifests)
    eventually(lambda: runner.gone("old"))
    eventually(runner.manifests.is_dir)
    runner.write(a_pod("new"))
    runner.runs("new")


def test_pods_go_on_where_their_status_cannot_be_written(runner: Runner, tmp_path: Path) -> None:
    long = a_long_time(30)
    status = runner.root / "pods.json"
    status.unlink(missing_ok=True)
    status.mkdir()
    (status / "in the way").touch()
    runner.write(a_pod("unseen", ["sleep", long]))
    eventually(lambda: len(sleepers(long)) == 1)
    eventually(lambda: "cannot write" in (runner.root / "runner.log").read_text())
    shutil.rmtree(status)
    runner.write(a_pod("seen", ["sleep", long]))
    eventually(lambda: set(runner.told()["pods"]) == {"default/unseen", "default/seen"})


def test_containers_that_are_killed_again_and_again_come_back(runner: Runner) -> None:
    runner.write(a_pod("phoenix"))
    for round_number in range(3):
        seen = runner.runs("phoenix")
        assert seen["restarts"] == round_number
        os.kill(seen["pid"], signal.SIGKILL)
        eventually(partial(has_left, runner, "phoenix", seen["pid"]))
    assert runner.container("phoenix")["last_exit"]["signal"] == "SIGKILL"


def has_left(runner: Runner, pod: str, pid: int) -> bool:
    return bool(runner.container(pod)["pid"] != pid)


# Inside a host


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with a_cloud() as made:
        yield made


def counting(name: str, **more: Any) -> dict[str, Any]:
    return a_pod(name, ["sh", "-c", f"while :; do echo >> /run/{name}; sleep 0.01; done"], **more)


def test_freezing_a_host_freezes_its_pods(cloud: Cloud) -> None:
    host = cloud.start("frosty", 11, units={"kubelet.service": []})
    host.write_manifest("counts.json", counting("counts"))

    def counted() -> int:
        return host.outside("/run/counts").stat().st_size

    eventually(counted)
    hosts.freeze(host.pid)
    before = counted()
    time.sleep(0.2)
    assert counted() == before
    hosts.thaw(host.pid)
    eventually(lambda: counted() > before)
    assert host.container("counts")["restarts"] == 0
    hosts.kill(host.pid)


def test_a_host_that_is_switched_off_ends_its_pods_and_leaves_a_clean_disk(cloud: Cloud) -> None:
    host = cloud.start("orderly", 12, units={"kubelet.service": []})
    with a_loop_device() as (device, number):
        hosts.add_device(host.pid, "xvdu", number)
        host.run("sh", "-ec", "mkfs.ext4 -q /dev/xvdu; mkdir /mnt/d; mount /dev/xvdu /mnt/d; mkdir /mnt/d/data")
        last_words = "trap 'echo bye > /data/bye; exit 0' TERM; echo up > /data/up; while :; do sleep 0.01; done"
        pod = a_pod(
            "writer", ["sh", "-c", last_words], spec={"terminationGracePeriodSeconds": 8, **a_volume("/mnt/d/data")}
        )
        pod["spec"]["containers"][0]["volumeMounts"] = at("/data")
        host.write_manifest("writer.json", pod)
        eventually(lambda: host.run("cat", "/mnt/d/data/up", check=False).stdout == "up\n")
        started = hosts.started_at(host.pid)

        os.kill(host.pid, signal.SIGTERM)

        eventually(lambda: not hosts.alive(host.pid, started))
        eventually(lambda: not is_mounted_anywhere(number))
        assert read_from(cloud, device, number) == "bye\n"


def read_from(cloud: Cloud, device: Path, number: tuple[int, int]) -> str:
    """What another host finds on the disk: without a journal to play back."""
    other: Host = cloud.start("reader", 13)
    hosts.add_device(other.pid, "xvdu", number)
    eventually(lambda: "needs_recovery" not in other.run("dumpe2fs", "-h", "/dev/xvdu").stdout)
    other.run("sh", "-ec", "mkdir /mnt/d; mount /dev/xvdu /mnt/d")
    found = other.run("cat", "/mnt/d/data/bye").stdout
    hosts.kill(other.pid)
    eventually(lambda: not is_mounted_anywhere(number))
    assert device.exists()
    return found


def test_ten_hosts_one_after_the_other_leave_nothing_with_us(cloud: Cloud) -> None:
    def own_handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = own_handles()
    for number in range(10):
        host = cloud.start(f"brief-{number}", 20 + number)
        hosts.kill(host.pid)
        cloud.hosts.remove(host)
    assert own_handles() == before
    children = Path("/proc/thread-self/children").read_text().split()
    assert not [pid for pid in children if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"]
