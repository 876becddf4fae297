"""The static pods of the control plane: right for a kubelet of any version, and no wider than they must be."""

from __future__ import annotations

import json
import posixpath
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.config import EXAMPLES, a_group, completed
from protokube import fast_yaml
from protokube.config.complete import Config, complete
from protokube.launch.components import EXTERNAL, INTERNAL, components, kubeconfigs, own_files, secret_files
from protokube.launch.derive import from_config
from protokube.launch.machine import FileText, from_tree, to_tree
from protokube.local.pods.pods import read_pod
from protokube.manifests.component import ComponentPod, outermost, pod, words
from protokube.spec.parse import parse

NAMES = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "dns-controller"]
VERSIONS = ["1.20.2", "1.28.0", "1.30.0", "1.32.0", "1.34.1", "1.36.3"]


def of_version(version: str) -> Config:
    return completed(cloud="local", masters=3, kubernetesVersion=version)


def tree(each: ComponentPod) -> dict[str, Any]:
    document: dict[str, Any] = fast_yaml.load(pod(each))
    return document


def container(each: ComponentPod) -> dict[str, Any]:
    (only,) = tree(each)["spec"]["containers"]
    document: dict[str, Any] = only
    return document


@pytest.mark.parametrize("version", VERSIONS)
def test_a_master_runs_three_components_and_the_dns_controller_beside_etcd(version: str) -> None:
    assert [each.name for each in components(of_version(version))] == NAMES


@pytest.mark.parametrize("version", VERSIONS)
def test_a_master_that_is_a_node_runs_kube_proxy_as_well(version: str) -> None:
    config = of_version(version)
    *plain, proxy = components(config, nodes=True)
    assert tuple(plain) == components(config)
    assert (proxy.name, proxy.image) == ("kube-proxy", config.cluster["kubeProxy"]["image"])
    assert container(proxy)["securityContext"] == {"privileged": True}
    assert read_pod(pod(proxy)).containers[0].liveness is not None


def test_kube_proxy_sees_the_kubeconfig_that_its_file_names_and_the_keys_that_names() -> None:
    config = of_version("1.20.2")
    proxy = components(config, nodes=True)[-1]
    ((path, text),) = proxy.files.items()
    assert kubeconfigs(config, nodes=True)[fast_yaml.load(text)["clientConnection"]["kubeconfig"]] == "kube-proxy"
    folders = {mount["mountPath"] for mount in container(proxy)["volumeMounts"]}
    assert folders == {posixpath.dirname(path), "/lib/modules", "/run"}
    assert posixpath.dirname(path) == "/srv/kubernetes/kube-proxy"
    assert "kube-proxy" not in kubeconfigs(config).values()


@pytest.mark.parametrize(
    ("cloud", "nodes", "there"), [("local", None, False), ("local", True, True), ("aws", None, True)]
)
def test_masters_are_nodes_on_clouds_and_in_the_local_cloud_where_that_is_said(
    cloud: str, nodes: bool | None, there: bool
) -> None:
    config = completed(cloud=cloud, masters=3, **({"zones": ["us-east-1a"]} if cloud == "aws" else {}))
    wanted = from_config(config, nodes=nodes)
    assert ("kube-proxy" in [each.name for each in wanted.components]) is there
    assert ("kube-proxy" in wanted.kubeconfigs.values()) is there


def test_where_the_network_does_its_work_there_is_no_kube_proxy() -> None:
    cilium = {"plugin": "cilium", "options": {"enableNodePort": True}}
    config = completed(cloud="local", masters=3, networking=cilium)
    assert [each.name for each in components(config, nodes=True)] == NAMES
    assert "kube-proxy" not in kubeconfigs(config, nodes=True).values()


@pytest.mark.parametrize("version", VERSIONS)
def test_our_own_runner_understands_every_one_of_them(version: str) -> None:
    for each in components(of_version(version)):
        read = read_pod(pod(each))
        assert read.key == f"kube-system/{each.name}"
        assert read.containers[0].liveness is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_every_flag_of_the_configuration_is_passed_and_none_besides(version: str) -> None:
    config = of_version(version)
    for each, field in zip(
        components(config)[:3], ("kubeAPIServer", "kubeControllerManager", "kubeScheduler"), strict=True
    ):
        program, *flags = container(each)["command"]
        assert program == f"/usr/local/bin/{each.name}"
        assert {flag[2:].partition("=")[0] for flag in flags} == set(config.rendered[""][field]["flags"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_whatever_file_a_component_is_told_of_it_can_see(path: Any) -> None:
    config = complete(parse([(path.name, path.read_text())]))
    for each in components(config):
        folders = [mount["mountPath"] for mount in container(each)["volumeMounts"]]
        named = [word.partition("=")[2] for word in words(each.flags)]
        files = [part for value in named for part in value.split(",") if part.startswith(("/srv/", "/etc/", "/var/"))]
        for file in [*files, *each.files]:
            assert any(posixpath.dirname(file).startswith(folder) for folder in folders), file


def test_a_component_may_write_only_where_it_has_to() -> None:
    api, manager, scheduler, *others = components(of_version("1.34.1"))
    writable = [mount["mountPath"] for mount in container(api)["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["/var/log/kube-audit"]
    for each in (manager, scheduler, *others):
        assert all(mount["readOnly"] for mount in container(each)["volumeMounts"])


def test_the_names_of_the_api_are_told_to_the_dns_controller() -> None:
    api, manager, *_ = components(of_version("1.34.1"))
    annotations = tree(api)["metadata"]["annotations"]
    assert (annotations[EXTERNAL], annotations[INTERNAL]) == ("api.dev.example.com", "api.internal.dev.example.com")
    assert EXTERNAL not in tree(manager)["metadata"]["annotations"]


def test_a_changed_file_changes_the_pod_and_an_equal_one_does_not() -> None:
    api, *_ = components(of_version("1.34.1"))
    other = replace(api, files={path: f"{text}# changed\n" for path, text in api.files.items()})
    assert pod(api) == pod(replace(api, files=dict(sorted(api.files.items(), reverse=True))))
    assert pod(api) != pod(other)


def test_nothing_listens_without_a_certificate_and_probes_fit_what_listens() -> None:
    api, manager, scheduler, *_ = components(of_version("1.20.2"))
    assert container(api)["livenessProbe"]["tcpSocket"] == {"host": "127.0.0.1", "port": 443}
    for each, port in ((manager, 10257), (scheduler, 10259)):
        probe = container(each)["livenessProbe"]["httpGet"]
        assert (probe["scheme"], probe["port"], probe["path"]) == ("HTTPS", port, "/healthz")


def test_a_port_of_the_users_is_probed_there() -> None:
    config = completed(cloud="local", masters=3, kubeAPIServer={"securePort": 6443})
    api, *_ = components(config)
    assert container(api)["livenessProbe"]["tcpSocket"]["port"] == 6443
    assert from_config(config).api_port == 6443


def test_kubeconfigs_are_where_the_flags_say() -> None:
    config = of_version("1.34.1")
    commands = {each.name: container(each)["command"] for each in components(config)}
    for path, user in kubeconfigs(config).items():
        assert any(word.endswith(f"kubeconfig={path}") for word in commands[user])


def test_the_users_files_are_for_masters_if_they_say_so_or_say_nothing() -> None:
    assets: dict[str, dict[str, Any]] = {
        "everywhere": {"content": "a", "path": "/etc/kubernetes/manifests/own.manifest"},
        "masters": {"content": "Yg==", "isBase64": True, "roles": ["Master"], "mode": "0600"},
        "nodes": {"content": "c", "roles": ["Node"]},
    }
    listed = [{"name": name, **asset} for name, asset in assets.items()]
    found = own_files(completed(cloud="local", masters=3, fileAssets=listed).cluster)
    assert {path: (file.text, file.mode) for path, file in found.items()} == {
        "/etc/kubernetes/manifests/own.manifest": ("YQ==", 0o440),
        "/srv/kubernetes/assets/masters": ("Yg==", 0o600),
    }


def test_the_files_of_a_group_of_masters_are_for_its_masters_and_those_of_other_groups_for_nobody() -> None:
    def asset(content: str, **more: Any) -> list[dict[str, Any]]:
        return [{"name": "f", "path": "/etc/own", "content": content, **more}]

    masters = [a_group("m-a", "Master", fileAssets=asset("b", roles=["Master"]))]
    masters += [a_group("m-b", "Master", fileAssets=asset("c", roles=["Node"])), a_group("m-c", "Master")]
    config = completed(*masters, a_group("pool", fileAssets=asset("d")), cloud="local", fileAssets=asset("a"))
    wanted = from_config(config)

    assert wanted.files == {"/etc/own": FileText(text="YQ==", mode=0o440)}
    assert wanted.group_files == {"m-a": {"/etc/own": FileText(text="Yg==", mode=0o440)}}
    assert from_tree(json.loads(json.dumps(to_tree(wanted)))) == wanted


def test_base64_without_padding_as_the_original_wants_it_is_told_with_it() -> None:
    listed = [{"name": "f", "content": "Y\nQ", "isBase64": True}]
    assert [each.text for each in own_files(completed(fileAssets=listed).cluster).values()] == ["YQ=="]


def test_a_secret_is_named_and_never_in_launch_data() -> None:
    config = completed(cloud="local", masters=3, encryptionConfig=True)
    assert secret_files(config) == {
        "/srv/kubernetes/kube-apiserver/encryption.yaml": "encryption",
        "/srv/kubernetes/dns-controller/update.key": "dns-update-key",
    }
    assert "fromSecret" not in str(to_tree(from_config(config)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_an_agent_is_told_is_read_back_as_it_was(path: Any) -> None:
    wanted = from_config(complete(parse([(path.name, path.read_text())])))
    assert from_tree(json.loads(json.dumps(to_tree(wanted)))) == wanted


@given(st.dictionaries(st.sampled_from(["a", "b-c", "v"]), st.one_of(st.booleans(), st.integers(), st.text("xy=,"))))
def test_a_flag_is_one_word_whatever_its_value(flags: dict[str, Any]) -> None:
    arguments = words(flags)
    assert len(arguments) == len(flags)
    assert all(word.startswith("--") and "=" in word for word in arguments)


@given(st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))))
def test_of_folders_the_outermost_cover_all_and_none_lies_in_another(folders: set[str]) -> None:
    kept = outermost(folders)
    assert all(any(each == other or each.startswith(f"{other}/") for other in kept) for each in folders)
    assert not any(each.startswith(f"{other}/") for each in kept for other in kept)


def test_the_dns_controller_is_told_what_the_configuration_decided_and_may_write_nothing() -> None:
    config = completed(
        cloud="aws", dnsZone="example.com", dnsController={"watchIngress": True, "watchNamespace": "web"}
    )
    (controller,) = [each for each in components(config) if each.name == "dns-controller"]
    found = container(controller)

    assert found["image"] == config.cluster["dnsController"]["image"]
    assert found["command"] == [
        *("/usr/local/bin/protokube", "dns-controller", "--watch-ingress", "--dns=aws-route53"),
        *("--kubeconfig=/srv/kubernetes/dns-controller/kubeconfig", "--watch-namespace=web", "--zone=example.com"),
    ]
    assert {mount["mountPath"]: mount.get("readOnly") for mount in found["volumeMounts"]} == {
        "/srv/kubernetes/dns-controller": True,
    }
    assert found["livenessProbe"]["httpGet"] == {"host": "127.0.0.1", "port": 3991, "path": "/metrics"}


@pytest.mark.parametrize("cluster", [{"cloud": "gce"}, {"cloud": "metal"}, {"dnsController": {"enabled": False}}])
def test_where_it_cannot_work_or_is_not_wanted_there_is_nothing_of_the_dns_controller(cluster: dict[str, Any]) -> None:
    config = completed(**cluster)
    assert [each.name for each in components(config)] == [each for each in NAMES if each != "dns-controller"]
    assert "dns-controller" not in kubeconfigs(config).values()
    assert secret_files(config) == {}


def test_every_flag_of_the_dns_controller_is_one_that_its_command_takes() -> None:
    from protokube.cli.dns.controller import dns_controller

    for cloud in ("aws", "local"):
        settings = {"watchIngress": True, "watchNamespace": "web", "zones": ["example.com", "*/Z1"]}
        (pod_,) = [each for each in components(completed(cloud=cloud, dnsController=settings)) if not each.files][-1:]
        _, _, *flags = container(pod_)["command"]
        context = dns_controller.make_context("dns-controller", list(flags), resilient_parsing=False)
        assert context.params["zones"] == ("example.com", "*/Z1")
        assert (context.params["watch_ingress"], context.params["watch_namespace"]) == (True, "web")
