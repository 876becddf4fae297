"""The runner of static pods follows its manifests, and pods live and end as they should: real small programs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from clusters.hosts import a_pod, eventually
from clusters.pod_runner import Runner, a_long_time, a_runner, sleepers


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """One for all tests: each has pods of its own."""
    with a_runner() as made:
        yield made


# Following the manifests


def test_a_pod_starts_at_once_and_stops_when_its_manifest_goes(runner: Runner) -> None:
    eventually(runner.told)
    waits = []
    for name in ("quick-1", "quick-2", "quick-3", "quick-4"):  # the machine may be busy with other tests
        began = time.monotonic()
        runner.write(a_pod(name, ["sh", "-c", "echo started; exec sleep 1000"]))
        eventually(partial(says, runner, name, "started\n"))
        waits.append(time.monotonic() - began)
        pid = runner.runs(name)["pid"]
        assert Path(f"/proc/{pid}").exists()
        (runner.manifests / f"{name}.json").unlink()
        eventually(partial(runner.gone, name))
        assert not Path(f"/proc/{pid}").exists()
    # whoever only looks every second has just looked when the pod before is gone
    assert min(waits[1:]) < 0.6, "it was found by looking every second, not by an event"


def says(runner: Runner, pod: str, text: str) -> bool:
    return runner.log(pod) == text


def test_a_changed_manifest_starts_the_pod_anew_once_the_old_one_is_gone(runner: Runner, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    alone = f"set -e; trap 'sleep 0.2; rmdir {lock}; exit 0' TERM; mkdir {lock}; while :; do sleep 0.01; done"
    spec = {"terminationGracePeriodSeconds": 10}
    runner.write(a_pod("changing", ["sh", "-c", alone], spec=spec, env=[{"name": "EDITION", "value": "1"}]))
    first = runner.runs("changing")
    eventually(lock.is_dir)
    runner.write(a_pod("changing", ["sh", "-c", alone], spec=spec, env=[{"name": "EDITION", "value": "2"}]))
    second = eventually(
        lambda: seen if (seen := runner.container("changing"))["pid"] not in (first["pid"], None) else None
    )
    eventually(lock.is_dir)
    assert second["restarts"] == 0, "the first one still held its lock"
    assert runner.log("changing") == ""


def test_the_same_pod_written_differently_goes_on(runner: Runner) -> None:
    pod = a_pod("steady")
    runner.write(pod)
    before = runner.runs("steady")
    (runner.manifests / ".steady").write_text(json.dumps(pod, indent=3))
    (runner.manifests / ".steady").rename(runner.manifests / "steady.json")
    (runner.manifests / "steady.json").rename(runner.manifests / "renamed.json")
    eventually(lambda: runner.told()["pods"]["default/steady"]["file"] == "renamed.json")
    assert runner.container("steady") == before


def test_yaml_is_read_too(runner: Runner) -> None:
    text = """
    apiVersion: v1
    kind: Pod
    metadata: {name: yamly}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        command: [sh, -c]
        args: ["echo '$(WHO) $$(WHO) $(NOBODY)'; exec sleep 1000"]
        env: [{name: WHO, value: me}]
    """
    (runner.manifests / "yamly.manifest").write_text(text)
    eventually(lambda: runner.log("yamly") == "me $(WHO) $(NOBODY)\n")


def test_a_manifest_that_breaks_is_told_and_its_pod_goes_on(runner: Runner) -> None:
    runner.write(a_pod("robust"))
    before = runner.runs("robust")
    (runner.manifests / "robust.json").write_text('{"kind": "Pod", "metadata": {"na')
    problem = eventually(lambda: runner.told()["problems"].get("robust.json"))
    assert problem.startswith("not JSON")
    assert problem.endswith("; default/robust goes on as it was")
    assert runner.container("robust") == before
    runner.write(a_pod("robust"))
    eventually(lambda: "robust.json" not in runner.told()["problems"])
    assert runner.container("robust") == before


def test_a_manifest_that_is_being_written_is_not_read_before_it_is_whole(runner: Runner) -> None:
    half, rest = (
        "kind: Pod\nmetadata: {name: slow}\nspec:\n  hostNetwork: true\n  containers:\n  - name: main\n",
        ("    command: [sh, -c, 'echo whole; exec sleep 1000']\n  terminationGracePeriodSeconds: 0\n"),
    )
    with (runner.manifests / "slow.yaml").open("w") as file:
        file.write(half + "    command: [sh, -c, 'echo half']\n")
        file.flush()
        eventually(lambda: runner.told()["problems"].get("slow.yaml") == "is being written")
        time.sleep(0.2)
        assert runner.gone("slow")
        file.seek(0)
        file.truncate()
        file.write(half + rest)
    eventually(lambda: runner.log("slow") == "whole\n")
    eventually(lambda: "slow.yaml" not in runner.told()["problems"])


def test_a_pod_with_a_network_of_its_own_is_refused_in_words(runner: Runner) -> None:
    runner.write(a_pod("isolated", spec={"hostNetwork": False}))
    problem = eventually(lambda: runner.told()["problems"].get("isolated.json"))
    assert problem == "spec.hostNetwork is not true: pods with a network of their own need a real kubelet"
    assert runner.gone("isolated")


@pytest.mark.parametrize("file", [".hidden.yaml", "notes.txt", "etcd.yaml.backup", "etcd.yaml~"])
def test_files_that_are_no_manifests_run_nothing(runner: Runner, file: str) -> None:
    (runner.manifests / file).write_text(json.dumps(a_pod("stray")))
    runner.write(a_pod("witness"))
    runner.runs("witness")
    (runner.manifests / "witness.json").unlink()
    eventually(lambda: runner.gone("witness"))
    assert runner.gone("stray")
    told = runner.told()["problems"].get(file, "")
    assert told.startswith("passed over") is not file.startswith(".")
    (runner.manifests / file).unlink()


def test_a_link_counts_for_what_it_points_at_now(runner: Runner, tmp_path: Path) -> None:
    target = tmp_path / "on-a-volume.json"
    (runner.manifests / "linked.json").symlink_to(target)
    time.sleep(0.1)
    assert runner.gone("linked")
    target.write_text(json.dumps(a_pod("linked")))
    runner.runs("linked")
    target.unlink()
    eventually(lambda: runner.gone("linked"))


def test_two_files_with_one_pod_run_it_once(runner: Runner) -> None:
    runner.write(a_pod("twin"), "twin-1.json")
    before = runner.runs("twin")
    runner.write(a_pod("twin", ["sleep", "2000"]), "twin-0.json")
    told = eventually(lambda: runner.told()["problems"].get("twin-0.json"))
    assert told == "default/twin is in twin-1.json already"
    assert runner.container("twin") == before


def test_something_odd_with_the_name_of_a_manifest_blocks_nobody(runner: Runner) -> None:
    os.mkfifo(runner.manifests / "pipe.yaml")
    (runner.manifests / "folder.yaml").mkdir()
    (runner.manifests / "loop.yaml").symlink_to("loop.yaml")
    (runner.manifests / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    runner.write(a_pod("unhindered"))
    runner.runs("unhindered")
    problems = eventually(lambda: told if "binary.yaml" in (told := runner.told()["problems"]) else None)
    assert problems["binary.yaml"] == "not UTF-8"
    assert "Too many levels" in problems["loop.yaml"]
    for name in ("pipe.yaml", "loop.yaml", "binary.yaml"):
        (runner.manifests / name).unlink()
    (runner.manifests / "folder.yaml").rmdir()


# Its life


def test_a_container_that_ends_is_started_again_later_and_later(runner: Runner) -> None:
    began = time.monotonic()
    runner.write(a_pod("brief", ["sh", "-c", "echo life; exit 3"]))
    eventually(lambda: runner.log("brief").count("life") >= 4)
    assert time.monotonic() - began >= 0.2 + 0.4 + 0.8
    seen = eventually(
        lambda: seen if (seen := runner.container("brief"))["restarts"] >= 3 and seen["state"] == "waiting" else None
    )
    assert seen["reason"] == f"exit code 3; starts again in {0.2 * 2 ** seen['restarts']:g} s"
    assert (seen["pid"], seen["ready"]) == (None, False)
    assert (seen["last_exit"]["code"], seen["last_exit"]["why"]) == (3, "exit code 3")
    (runner.manifests / "brief.json").unlink()
    eventually(lambda: runner.gone("brief"))


def test_a_program_that_is_missing_is_told(runner: Runner) -> None:
    runner.write(a_pod("missing", ["/opt/no-such-program"]))
    told = eventually(lambda: runner.container("missing")["reason"])
    assert "there is no /opt/no-such-program here, and no no-such-program in PATH" in told
    (runner.manifests / "missing.json").unlink()


@pytest.mark.parametrize(
    ("policy", "code", "again"), [("Never", 1, False), ("OnFailure", 0, False), ("OnFailure", 1, True)]
)
def test_the_restart_policy_is_kept(runner: Runner, policy: str, code: int, again: bool) -> None:
    name = f"policy-{policy.lower()}-{code}"
    runner.write(a_pod(name, ["sh", "-c", f"exit {code}"], spec={"restartPolicy": policy}))
    seen = eventually(
        lambda: seen if (seen := runner.container(name))["last_exit"] and seen["state"] != "running" else None
    )
    assert seen["state"] == ("waiting" if again else "terminated")
    (runner.manifests / f"{name}.json").unlink()
    eventually(lambda: runner.gone(name))


def test_a_container_is_asked_before_it_is_killed(runner: Runner) -> None:
    gentle = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.01; done"
    deaf = "trap '' TERM; echo up; while :; do sleep 0.01; done"
    for name, command, grace in (("gentle", gentle, 30), ("deaf", deaf, 0.2)):
        runner.write(a_pod(name, ["sh", "-c", command], spec={"terminationGracePeriodSeconds": grace}))
    for name in ("gentle", "deaf"):
        runner.runs(name)
    eventually(lambda: runner.log("gentle") == runner.log("deaf") == "up\n")
    began = time.monotonic()
    for name in ("gentle", "deaf"):
        (runner.manifests / f"{name}.json").unlink()
    eventually(lambda: runner.gone("gentle") and runner.gone("deaf"), 20)
    assert 0.2 <= time.monotonic() - began < 25
    assert runner.log("gentle") == "up\nasked\n"


def test_everything_a_container_started_ends_with_it(runner: Runner) -> None:
    long = a_long_time(1)
    runner.write(a_pod("family", ["sh", "-c", f"setsid sleep {long} & setsid nohup sleep {long} & sleep 1000"]))
    runner.runs("family")
    eventually(lambda: len(sleepers(long)) == 2)
    (runner.manifests / "family.json").unlink()
    eventually(lambda: runner.gone("family"))
    assert sleepers(long) == []


def test_two_containers_of_a_pod_live_and_die_apart(runner: Runner) -> None:
    pod = a_pod("pair")
    pod["spec"]["containers"].append({"name": "side", "command": ["sh", "-c", "sleep 0.05; exit 1"]})
    runner.write(pod)
    eventually(lambda: runner.container("pair", "side")["restarts"] >= 1)
    assert runner.container("pair", "main")["restarts"] == 0
    (runner.manifests / "pair.json").unlink()
    eventually(lambda: runner.gone("pair"))


# The runner itself


def test_a_runner_that_is_asked_to_end_ends_its_pods_first(tmp_path: Path) -> None:
    own = Runner(tmp_path)
    own.write(
        a_pod(
            "last",
            ["sh", "-c", "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.01; done"],
            spec={"terminationGracePeriodSeconds": 30},
        )
    )
    eventually(lambda: own.log("last") == "up\n")
    own.process.terminate()
    assert own.process.wait(40) == 0
    assert own.log("last") == "up\nbye\n"
    assert own.told()["pods"] == {}


def test_containers_die_with_a_runner_that_is_killed(tmp_path: Path) -> None:
    own = Runner(tmp_path)
    long = a_long_time(2)
    own.write(a_pod("bound", ["sh", "-c", f"sleep {long} & sleep {long}"]))
    eventually(lambda: len(sleepers(long)) == 2)
    own.process.kill()
    own.process.wait()
    eventually(lambda: not sleepers(long))
