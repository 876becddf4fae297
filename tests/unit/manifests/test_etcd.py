"""The pod of an etcd member, and the file it reads: its settings, and what never changes while the member runs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from clusters.scenario.host import wanted_of
from protokube.manifests.etcd import EtcdPod, digest, founding, going_on, joining, pod

MAIN, EVENTS = wanted_of("main events").etcd
MEMBER = MAIN.members[0]
PEERS = [(each.name, each.peer_url) for each in MAIN.members]


def a_pod(
    etcd: EtcdPod = MAIN.pod, *, settings: dict[str, Any] | None = None, generation: str = "g1", epoch: int = 3
) -> dict[str, Any]:
    read = yaml.safe_load(pod(etcd, "/mnt/master-vol-1", settings=settings or {}, generation=generation, epoch=epoch))
    assert isinstance(read, dict)
    return read


GOLDEN = """\
apiVersion: v1
kind: Pod
metadata:
  name: etcd-server
  namespace: kube-system
  labels:
    k8s-app: etcd-server
  annotations:
    scheduler.alpha.kubernetes.io/critical-pod: ''
    protokube.io/generation: g1
    protokube.io/epoch: '3'
    protokube.io/settings: DIGEST
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  tolerations:
  - key: CriticalAddonsOnly
    operator: Exists
  containers:
  - name: etcd-container
    image: registry.k8s.io/etcd:3.6.8-0
    command:
    - /usr/local/bin/etcd
    env:
    - name: ETCD_CONFIG_FILE
      value: /etc/kubernetes/config/etcd.yaml
"""


def test_the_manifest_begins_as_people_know_it() -> None:
    text = pod(MAIN.pod, "/mnt/master-vol-1", settings=MEMBER.settings, generation="g1", epoch=3)
    assert text.startswith(GOLDEN.replace("DIGEST", digest(MEMBER.settings)))
    assert text == pod(MAIN.pod, "/mnt/master-vol-1", settings=MEMBER.settings, generation="g1", epoch=3)


def test_its_data_lies_on_the_volume_and_nowhere_else() -> None:
    paths = {each["name"]: each["hostPath"] for each in a_pod()["spec"]["volumes"]}
    assert paths["varetcdata"] == {"path": "/mnt/master-vol-1/var/etcd/data", "type": "DirectoryOrCreate"}
    mounts = {each["name"]: each for each in a_pod()["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["varetcdata"] == {"name": "varetcdata", "mountPath": "/var/etcd/data"}
    assert all(each.get("readOnly") for name, each in mounts.items() if name != "varetcdata")
    assert paths.keys() == mounts.keys()


def test_the_file_it_reads_is_mounted_where_its_environment_says() -> None:
    (container,) = a_pod()["spec"]["containers"]
    assert container["env"] == [{"name": "ETCD_CONFIG_FILE", "value": "/etc/kubernetes/config/etcd.yaml"}]
    assert {"name": "config", "mountPath": "/etc/kubernetes/config", "readOnly": True} in container["volumeMounts"]


def test_a_member_that_waits_for_a_quorum_is_not_restarted_for_it() -> None:
    probe = a_pod()["spec"]["containers"][0]["livenessProbe"]
    assert probe["tcpSocket"] == {"host": "127.0.0.1", "port": 2390}
    assert "httpGet" not in probe


def test_main_and_events_differ_in_name_ports_and_place() -> None:
    main, events = a_pod(MAIN.pod), a_pod(EVENTS.pod)
    assert (main["metadata"]["name"], events["metadata"]["name"]) == ("etcd-server", "etcd-server-events")
    ports = [{each["hostPort"] for each in document["spec"]["containers"][0]["ports"]} for document in (main, events)]
    assert ports == [{2380, 4001}, {2381, 4002}]
    assert events["spec"]["volumes"][0]["hostPath"]["path"] == "/mnt/master-vol-1/var/etcd/data-events"
    assert (MAIN.pod.file_name, EVENTS.pod.file_name) == ("etcd.manifest", "etcd-events.manifest")


def test_only_generation_and_epoch_tell_two_pods_of_one_volume_apart() -> None:
    one, other = a_pod(epoch=3), a_pod(epoch=4)
    assert one != other
    assert one["metadata"].pop("annotations")["protokube.io/epoch"] == "3"
    assert other["metadata"].pop("annotations")["protokube.io/epoch"] == "4"
    assert one == other


def test_it_is_critical_and_uses_the_network_of_its_machine() -> None:
    spec = a_pod()["spec"]
    assert spec["hostNetwork"] is True
    assert spec["priorityClassName"] == "system-node-critical"


def test_a_founder_is_told_the_fixed_set_and_the_token_of_this_creation() -> None:
    document = yaml.safe_load(founding(MEMBER.settings, "token-g1"))
    assert document["initial-cluster-state"] == "new"
    assert document["initial-cluster-token"] == "token-g1"
    assert document["initial-cluster"] == ",".join(f"{name}={url}" for name, url in PEERS)
    assert document["name"] == "etcd-a"


def test_a_joining_member_is_told_exactly_the_members_that_are_listed_now() -> None:
    document = yaml.safe_load(joining(MEMBER.settings, "token", PEERS[1:] + PEERS[:1]))
    assert document["initial-cluster-state"] == "existing"
    assert document["initial-cluster"] == ",".join(f"{name}={url}" for name, url in PEERS)


def test_one_that_goes_on_is_told_of_nobody_but_itself_so_that_without_data_it_cannot_start() -> None:
    document = yaml.safe_load(going_on(MEMBER.settings, "token"))
    assert document["initial-cluster-state"] == "existing"
    assert document["initial-cluster"] == f"etcd-a={MEMBER.peer_url}"


@pytest.mark.parametrize(
    "write", [lambda s: founding(s, "t"), lambda s: going_on(s, "t"), lambda s: joining(s, "t", PEERS)]
)
def test_everything_else_in_the_file_is_what_the_configuration_says(write: Any) -> None:
    document = yaml.safe_load(write(MEMBER.settings))
    beginning = {"initial-cluster", "initial-cluster-state", "initial-cluster-token"}
    assert {key: value for key, value in document.items() if key not in beginning} == {
        key: value for key, value in MEMBER.settings.items() if key not in beginning
    }
    assert list(document) == sorted(document)


def test_the_settings_of_a_member_are_not_changed_by_writing_them() -> None:
    before = dict(MEMBER.settings)
    founding(MEMBER.settings, "t"), going_on(MEMBER.settings, "t"), joining(MEMBER.settings, "t", PEERS)
    assert MEMBER.settings == before


def test_a_changed_setting_changes_the_pod_so_that_it_restarts() -> None:
    before, after = a_pod(settings={"a": 1}), a_pod(settings={"a": 2})
    assert before["metadata"]["annotations"] != after["metadata"]["annotations"]
    assert before["spec"] == after["spec"]
    assert a_pod(settings={"a": 1, "b": 2}) == a_pod(settings={"b": 2, "a": 1})
