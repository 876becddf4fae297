"""Decoding a static pod: what is supported, and the messages for what is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.hosts import a_pod, a_volume, at
from protokube.local.pods.fields import PodProblem
from protokube.local.pods.pods import Pod, VolumeMount, expand, order_of_mounting, read_pod
from protokube.local.pods.probestate import Exec, HttpGet, Probe, TcpSocket

steady = settings(derandomize=True, deadline=None)

GOOD = "kind: Pod\nmetadata: {name: x}\nspec: {hostNetwork: true, containers: [{name: a, command: [a]}]}\n"


def read(pod: dict[str, Any]) -> Pod:
    return read_pod(json.dumps(pod))


def main_of(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def problem_of(pod: Any) -> str:
    with pytest.raises(PodProblem) as found:
        read(pod)
    return str(found.value)


def test_a_whole_pod_is_read() -> None:
    pod = a_pod("etcd", ["etcd"], args=["--name=$(NAME)"], env=[{"name": "NAME", "value": "a"}], workingDir="/var")
    pod["metadata"]["namespace"] = "kube-system"
    pod["spec"] |= {"terminationGracePeriodSeconds": 7, "restartPolicy": "OnFailure", **a_volume("/mnt/a", "Directory")}
    main_of(pod)["volumeMounts"] = at("/var/etcd/", readOnly=True, subPath="data")
    found = read(pod)
    assert (found.key, found.grace, found.restart_policy) == ("kube-system/etcd", 7.0, "OnFailure")
    (container,) = found.containers
    assert container.command == ("etcd", "--name=a")
    assert container.environment == (("NAME", "a"),)
    assert container.working_dir == "/var"
    assert container.mounts == (
        VolumeMount(host_path="/mnt/a", kind="Directory", sub_path="data", mount_path="/var/etcd", read_only=True),
    )


def test_what_is_left_out_has_kubelets_defaults() -> None:
    pod = a_pod("plain")
    del pod["metadata"]["namespace"], pod["spec"]["terminationGracePeriodSeconds"]
    found = read(pod)
    assert (found.namespace, found.grace, found.restart_policy) == ("default", 30.0, "Always")
    (container,) = found.containers
    assert (container.working_dir, container.mounts, container.environment) == ("/", (), ())
    assert (container.liveness, container.readiness, container.startup) == (None, None, None)


def test_yaml_and_json_of_one_pod_are_the_same_pod() -> None:
    pod = a_pod("same", livenessProbe={"tcpSocket": {"port": 80}})
    assert read_pod(yaml.safe_dump(pod)) == read_pod(json.dumps(pod)) == read_pod(json.dumps(pod, indent=4))


def test_the_digest_changes_with_anything_that_is_said() -> None:
    first = a_pod("changing")
    second = a_pod("changing")
    main_of(second)["resources"] = {"requests": {"cpu": "100m"}}
    assert read(first).digest == read(first).digest
    assert read(first).digest != read(second).digest


REFUSED: list[tuple[str, Any, str]] = [
    ("kind", "Deployment", "kind is 'Deployment', not Pod"),
    ("kind", None, "kind is missing"),
    ("metadata", [], "metadata is [], not a mapping"),
    ("metadata.name", None, "metadata.name is missing"),
    ("metadata.name", "../x", "metadata.name is '../x', not a name"),
    ("metadata.name", 7, "metadata.name is 7, not a text"),
    ("metadata.namespace", "a/b", "metadata.namespace is 'a/b', not a name"),
    ("spec.hostNetwork", None, "spec.hostNetwork is not true"),
    ("spec.hostNetwork", False, "spec.hostNetwork is not true"),
    ("spec.hostNetwork", "yes", "spec.hostNetwork is 'yes', not true or false"),
    ("spec.initContainers", [{}], "spec.initContainers needs a real kubelet"),
    ("spec.hostPID", True, "spec.hostPID needs a real kubelet"),
    ("spec.containers", [], "spec.containers is empty"),
    ("spec.containers", None, "spec.containers is empty"),
    ("spec.containers", ["a"], "spec.containers[0] is not a mapping"),
    ("spec.containers", [{"name": "a", "command": ["a"]}] * 2, "two have the same name"),
    ("spec.restartPolicy", "Sometimes", "not one of Always, OnFailure, Never"),
    ("spec.terminationGracePeriodSeconds", -1, "not a number from 0 up"),
    ("spec.terminationGracePeriodSeconds", True, "not a number from 0 up"),
    ("spec.volumes", [{"name": "a", "emptyDir": {}}], "emptyDir; only hostPath"),
    ("spec.volumes", [{"name": "a"}], "no source; only hostPath"),
    ("spec.volumes", a_volume("/a", "Folder")["volumes"], "type is 'Folder', not one of Directory, "),
    ("spec.volumes", a_volume("/a/../b")["volumes"], "path is '/a/../b', not an absolute path"),
    ("main.name", "Main", "name is 'Main', not a name"),
    ("main.command", None, "spec.containers[0].command is empty: images are not pulled"),
    ("main.command", "sleep 3", "spec.containers[0].command is 'sleep 3', not a list"),
    ("main.command", ["a", 1], "holds something that is not a text"),
    ("main.args", ["a\0"], "holds something that is not a text"),
    ("main.env", [{"name": "A", "valueFrom": {}}], "env[0].valueFrom needs a real kubelet"),
    ("main.env", [{"name": "A=B"}], "not the name of a variable"),
    ("main.env", [{"name": "A", "value": "\0"}], "holds a zero byte"),
    ("main.env", [{"name": "A", "value": 1}], "env[0].value is 1, not a text"),
    ("main.envFrom", [{}], "envFrom needs a real kubelet"),
    ("main.workingDir", "var", "workingDir is 'var', not an absolute path"),
    ("main.volumeMounts", at("/x"), "there is no volume 'data'"),
]


@pytest.mark.parametrize(("place", "value", "problem"), REFUSED)
def test_what_cannot_be_run_is_refused_with_the_fields_name(place: str, value: Any, problem: str) -> None:
    pod = a_pod("refused")
    put(pod, place, value)
    assert problem in problem_of(pod)


def put(pod: dict[str, Any], place: str, value: Any) -> None:
    """Change one field of a pod, or of its container: `main.command`; None takes it away."""
    *outer, last = place.split(".")
    section = {"": pod, "main": main_of(pod)}.get(outer[0] if outer else "", pod.get(outer[0]) if outer else None)
    assert section is not None
    if value is None:
        section.pop(last, None)
    else:
        section[last] = value


@pytest.mark.parametrize(
    ("mount", "problem"),
    [
        ({"mountPath": "/x", "subPath": "/etc"}, "subPath: '/etc' leads out of the volume"),
        ({"mountPath": "/x", "subPath": "a/../.."}, "leads out of the volume"),
        ({"mountPath": "/x", "subPathExpr": "$(A)"}, "subPathExpr needs a real kubelet"),
        ({"mountPath": "/"}, "mountPath is the root itself"),
        ({"mountPath": "x"}, "mountPath is 'x', not an absolute path"),
        ({"mountPath": "/x", "readOnly": "no"}, "readOnly is 'no', not true or false"),
        ({}, "mountPath is missing"),
    ],
)
def test_a_mount_that_cannot_be_made_is_refused(mount: dict[str, Any], problem: str) -> None:
    pod = a_pod("refused", volumeMounts=[{"name": "data", **mount}], spec=a_volume("/mnt"))
    assert problem in problem_of(pod)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a pod: the file holds no mapping"),
        ("[]", "not a pod"),
        ("just words", "not a pod"),
        ("a: [", "not YAML"),
        ("{", "not JSON"),
        ("kind: Pod\n---\nkind: Pod\n", "not YAML"),
        ("{" + '"a":' * 5, "not JSON"),
        ('{"a":' * 5000, "not JSON"),
        (f"{GOOD}1: 2\n", "not a plain document"),
        (f"{GOOD}a: &a [*a]\n", "not a plain document"),
    ],
)
def test_a_file_that_is_no_pod_is_told_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(PodProblem) as found:
        read_pod(text)
    assert problem in str(found.value)
    assert "\n" not in str(found.value)


def test_probes_are_read_with_kubelets_defaults() -> None:
    pod = a_pod("probed", livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"tcpSocket": {"port": "web"}})
    main_of(pod)["ports"] = [{"name": "web", "containerPort": 8080}, {"containerPort": 1}]
    main_of(pod)["startupProbe"] = {"exec": {"command": ["true"]}, "periodSeconds": 2, "failureThreshold": 30}
    (container,) = read(pod).containers
    assert container.liveness == Probe(check=HttpGet(secure=False, host="", port=80, path="/", headers=()))
    assert container.liveness.period == 10
    assert (container.liveness.timeout, container.liveness.failures, container.liveness.successes) == (1, 3, 1)
    assert container.readiness == Probe(check=TcpSocket(host="", port=8080))
    assert container.startup == Probe(check=Exec(("true",)), period=2, failures=30)


def test_an_http_probe_is_read_whole() -> None:
    get = {"port": 443, "scheme": "HTTPS", "host": "127.0.0.1", "path": "livez?x=1"}
    get |= {"httpHeaders": [{"name": "A", "value": "b"}]}
    probe = {"httpGet": get, "initialDelaySeconds": 3, "timeoutSeconds": 15, "successThreshold": 2}
    (container,) = read(a_pod("probed", livenessProbe=probe)).containers
    check = HttpGet(secure=True, host="127.0.0.1", port=443, path="/livez?x=1", headers=(("A", "b"),))
    assert container.liveness == Probe(check=check, initial_delay=3, timeout=15, successes=2)


@pytest.mark.parametrize(
    ("probe", "problem"),
    [
        ({}, "livenessProbe has none of httpGet, tcpSocket, exec"),
        ({"exec": {"command": []}}, "has none of httpGet"),
        ({"grpc": {"port": 1}}, "has none of httpGet"),
        ({"tcpSocket": {"port": "web"}}, "no port of the container is called 'web'"),
        ({"tcpSocket": {"port": 0}}, "port is 0, not a number from 1 up"),
        ({"tcpSocket": {"port": 65536}}, "port is 65536, beyond 65535"),
        ({"tcpSocket": {}}, "port is missing"),
        ({"tcpSocket": {"port": 1}, "periodSeconds": 0}, "periodSeconds is 0, not a number from 0.05 up"),
        ({"tcpSocket": {"port": 1}, "failureThreshold": 0}, "failureThreshold is 0, not a number from 1 up"),
        ({"httpGet": "http://x"}, "httpGet is 'http://x', not a mapping"),
    ],
)
def test_a_probe_that_asks_nothing_is_refused(probe: dict[str, Any], problem: str) -> None:
    assert problem in problem_of(a_pod("refused", livenessProbe={**probe, "x": 1}))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = ["kind", "metadata", "spec", "spec.hostNetwork", "spec.volumes", "spec.containers", "spec.restartPolicy"]
PLACES += [
    f"main.{name}" for name in ("name", "command", "env", "workingDir", "volumeMounts", "livenessProbe", "ports")
]


@steady
@given(place=st.sampled_from(PLACES), anything=ANYTHING)
def test_whatever_stands_in_a_pod_is_a_pod_or_a_problem(place: str, anything: Any) -> None:
    pod = a_pod("fuzzed")
    put(pod, place, anything)
    only_a_problem(json.dumps(pod))


@steady
@given(st.text() | st.binary().map(lambda data: data.decode(errors="replace")))
def test_whatever_a_file_holds_is_a_pod_or_a_problem(text: str) -> None:
    only_a_problem(text)


def only_a_problem(text: str) -> None:
    with suppress(PodProblem):
        assert read_pod(text).containers


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$(NOBODY)", "$(NOBODY)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("$", "$"),
        ("$$", "$"),
        ("a$", "a$"),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
        ("$(A)$(A)", "11"),
        ("", ""),
    ],
)
def test_variables_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expanded


@steady
@given(st.text(alphabet="ab()", max_size=20))
def test_text_without_a_dollar_stays(text: str) -> None:
    assert expand(text, {"a": "x", "": "y"}) == text


@steady
@given(st.text(alphabet="$(A)b", max_size=20))
def test_doubled_dollars_bring_any_text_through(text: str) -> None:
    assert expand(text.replace("$", "$$"), {"A": "1", "": "2", "b": "3"}) == text


@steady
@given(st.dictionaries(st.text("AB", min_size=1, max_size=3), st.text("$()A", max_size=6), min_size=1))
def test_values_are_not_expanded_again(environment: dict[str, str]) -> None:
    for name, value in environment.items():
        assert expand(f"<$({name})>", environment) == f"<{value}>"


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@steady
@given(st.lists(PATHS, unique=True, max_size=8))
def test_nothing_is_mounted_over_what_lies_inside_it(paths: list[str]) -> None:
    mounts = [VolumeMount(host_path="/", kind="", sub_path="", mount_path=path, read_only=False) for path in paths]
    order = [mount.mount_path for mount in order_of_mounting(mounts)]
    assert sorted(order) == sorted(paths)
    for later, path in enumerate(order):
        assert not any(sooner.startswith(f"{path}/") for sooner in order[:later])
