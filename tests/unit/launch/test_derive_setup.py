"""From a complete configuration to what nodeup of one machine is told: every field is carried out, or named."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from builders.config import a_group, completed
from builders.setups import PROGRAMS, a_setup, an_asset, assets, derived
from protokube.errors import InvalidRequest, InvalidSpec, NotFound
from protokube.launch.derive_setup import OF_CLUSTER, OF_GROUP, derive_setup
from protokube.launch.setups.runtime import pinned_assets
from protokube.launch.setups.values import AssetSetup, ContainerHook, MountSetup
from protokube.spec.cluster import Cluster
from protokube.spec.fields import declared
from protokube.spec.group import InstanceGroup

DIGEST = "ab" * 32


def refused(role: str = "Node", *groups: Any, **cluster: Any) -> dict[str, str]:
    """By path, what is wrong, and the hint."""
    with pytest.raises(InvalidSpec) as error:
        a_setup(role, *groups, **cluster)
    return {each.path: f"{each.message}; {each.hint}" for each in error.value.problems}


def warned(role: str = "Node", **cluster: Any) -> dict[str, str]:
    found = derived(completed(**({"cloud": "metal", "nodes": 1} | cluster)), role).warnings
    return {each.path: each.message for each in found}


def test_every_field_of_the_spec_is_known_to_be_about_machines_or_not() -> None:
    """A new field has to be listed: where it is carried out, or here, as one that others carry out."""
    of_the_cloud = {
        "additionalNetworkCIDRs", "additionalPolicies", "api", "cloud", "cloudLabels", "disableSubnetTags", "dnsZone",
        "externalPolicies", "iam", "isolateMasters", "kubernetesApiAccess", "masters", "networkCIDR", "networkID",
        "nodePortAccess", "nodes", "project", "region", "rollingUpdate", "sshAccess", "sshKeyName", "subnets",
        "topology", "zones",
    }  # fmt: skip
    of_the_agent = {
        "additionalSans", "addons", "assets", "authorization", "cloudConfig", "cloudControllerManager", "clusterDNS",
        "clusterDNSDomain", "configBase", "dnsController", "encryptionConfig", "etcdClusters", "keyStore",
        "kubeAPIServer", "kubeControllerManager", "kubeProxy", "kubeScheduler", "masterInternalName",
        "masterPublicName", "networking", "nonMasqueradeCIDR", "pki", "podCIDR", "secretStore",
        "serviceAccountIssuerDiscovery", "serviceClusterIPRange", "useHostCertificates",
    }  # fmt: skip
    groups_of_the_cloud = {
        "additionalSecurityGroups", "associatePublicIp", "autoscale", "autoscalePriority", "capacityRebalance",
        "cloudLabels", "compressUserData", "cpuCredits", "detailedInstanceMonitoring", "externalLoadBalancers",
        "gcpProvisioningModel", "guestAccelerators", "iam", "image", "instanceInterruptionBehavior",
        "instanceMetadata", "instanceProtection", "machineType", "maxInstanceLifetime", "maxPrice", "maxSize",
        "minSize", "mixedInstancesPolicy", "nodeLabels", "rollingUpdate", "rootVolumeDeleteOnTermination",
        "rootVolumeEncryption", "rootVolumeEncryptionKey", "rootVolumeIops", "rootVolumeOptimization",
        "rootVolumeSize", "rootVolumeThroughput", "rootVolumeType", "securityGroupOverride",
        "spotDurationInMinutes", "subnets", "suspendProcesses", "taints", "tenancy", "volumes", "warmPool", "zones",
    }  # fmt: skip

    assert set(declared(Cluster)) == of_the_cloud | of_the_agent | set(OF_CLUSTER)
    assert set(declared(InstanceGroup)) == groups_of_the_cloud | set(OF_GROUP)


def test_a_group_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(NotFound, match="there is no instance group node"):
        derive_setup(completed(cloud="metal", nodes=1), "node")


def test_a_bastion_has_no_kubelet_and_so_no_setup() -> None:
    config = completed(a_group("way-in", "Bastion"), cloud="metal")

    with pytest.raises(InvalidRequest, match="machines of way-in run no kubelet"):
        derive_setup(config, "way-in")


def test_a_master_is_told_of_the_kubelet_that_its_agent_will_keep() -> None:
    setup = a_setup()

    assert setup.agent is not None
    assert setup.agent["master"]["kubelets"][setup.group]["flags"] == setup.kubelet.flags


def test_docker_is_refused_and_its_settings_without_it_are_ignored_with_a_warning() -> None:
    assert refused(containerRuntime="docker", kubernetesVersion="1.20.15") == {
        "containerRuntime": "protokube does not install Docker; use containerd, which every version supports"
    }
    assert warned(docker={"logDriver": "json-file"}) == {"docker": "ignored: the container runtime is containerd"}


def test_files_of_the_group_come_first_and_those_of_other_roles_not_at_all() -> None:
    group = a_group(fileAssets=[{"name": "motd", "path": "/etc/motd", "content": "group"}])
    setup = a_setup(
        "Node",
        group,
        fileAssets=[
            {"name": "motd", "path": "/etc/motd", "content": "cluster", "mode": "0644"},
            {"name": "plain", "content": "cGxhaW4", "isBase64": True},
            {"name": "master", "content": "no", "roles": ["Master"]},
        ],
    )

    found = {each.path: (b64decode(each.content), each.mode) for each in setup.files}

    assert found == {"/etc/motd": (b"group", 0o440), "/srv/kubernetes/assets/plain": (b"plain", 0o440)}


def test_hooks_of_the_group_come_first_and_the_first_of_a_name_wins() -> None:
    group = a_group(hooks=[{"name": "a", "manifest": "ExecStart=/bin/group"}, {"manifest": "ExecStart=/bin/x"}])
    setup = a_setup(
        "Node",
        group,
        hooks=[
            {"name": "a.service", "manifest": "ExecStart=/bin/cluster"},
            {"manifest": "ExecStart=/bin/y", "before": ["kubelet.service"], "requires": ["b.service"]},
            {"name": "gone", "disabled": True},
            {"name": "later", "enabled": False, "manifest": "ExecStart=/bin/z"},
            {"name": "master", "roles": ["Master"], "manifest": "ExecStart=/bin/m"},
        ],
    )

    assert [(each.name, each.service, each.disabled, each.enabled) for each in setup.hooks] == [
        ("a.service", "ExecStart=/bin/group", False, True),
        ("protokube-hook-group-1.service", "ExecStart=/bin/x", False, True),
        ("protokube-hook-1.service", "ExecStart=/bin/y", False, True),
        ("gone.service", "", True, True),
        ("later.service", "ExecStart=/bin/z", False, False),
    ]
    assert (setup.hooks[2].before, setup.hooks[2].requires) == (("kubelet.service",), ("b.service",))


def test_a_hook_may_run_a_container_by_its_full_name() -> None:
    hook = {"execContainer": {"image": "busybox", "command": ["sh", "-c", "true"], "environment": {"A": 1}}}

    (found,) = a_setup("Node", hooks=[hook]).hooks

    assert found.container == ContainerHook(
        image="docker.io/library/busybox:latest", command=("sh", "-c", "true"), environment={"A": "1"}
    )


def test_hooks_that_cannot_be_carried_out_are_named() -> None:
    both = {"name": "both", "manifest": "ExecStart=/bin/a", "execContainer": {"image": "x"}}
    raw = {"name": "raw", "manifest": "[Unit]", "useRawManifest": True, "before": ["a.service"]}

    assert refused(
        hooks=[
            {"name": "a/b", "manifest": "x"},
            {"execContainer": {"image": "UP CASE", "volumes": [], "environment": {"A-B": "1"}}},
        ]
    ).keys() == {
        "hooks[0].name", "hooks[1].execContainer.image", "hooks[1].execContainer.volumes",
        "hooks[1].execContainer.environment.A-B",
    }  # fmt: skip
    assert warned(hooks=[both, raw]) == {
        "hooks[0].execContainer": "ignored: the hook has a `manifest`",
        "hooks[1]": "`requires` and `before` are ignored: the manifest is the whole unit",
    }


def test_sysctls_of_the_group_override_those_of_the_cluster() -> None:
    group = a_group(sysctlParameters=["vm.swappiness = 10"])

    setup = a_setup("Node", group, sysctlParameters=["vm.swappiness=0", "# why", "net/core/somaxconn=4096"])

    assert setup.sysctls == {"vm.swappiness": "10", "net.core.somaxconn": "4096"}
    assert refused(sysctlParameters=["vm.swappiness"]) == {
        "sysctlParameters[0]": "'vm.swappiness' is not a setting; NAME=VALUE, such as net.core.somaxconn=1024"
    }


def test_packages_update_policy_and_keys_are_taken_over() -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 a  b"
    group = a_group(packages=["jq", "nfs-common"], updatePolicy="external")

    setup = a_setup("Node", group, packages=["nfs-common"], updatePolicy="automatic", sshPublicKeys=[key])

    assert setup.packages == ("nfs-common", "jq")
    assert setup.update_policy == "external"
    assert setup.ssh_keys == ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 a b",)
    assert refused(sshPublicKeys=["-----BEGIN OPENSSH PRIVATE KEY-----"]).keys() == {"sshPublicKeys[0]"}


def test_disks_of_the_group_are_mounted_and_unknown_settings_of_theirs_refused() -> None:
    mount = {"device": "/dev/sdb", "path": "/data", "filesystem": "xfs", "mountOptions": ["noatime"]}

    setup = a_setup("Node", a_group(volumeMounts=[mount]))

    assert setup.mounts == (
        MountSetup(device="/dev/sdb", path="/data", file_system="xfs", options=("noatime",)),
    )  # fmt: skip
    wrong = a_group(volumeMounts=[{"device": "sdb", "filesystem": "zfs", "encrypt": True}])
    assert refused("Node", wrong).keys() == {
        f"instanceGroups.nodes.volumeMounts[0].{name}" for name in ("device", "path", "filesystem", "encrypt")
    }


def test_parts_for_cloud_init_are_refused_where_none_runs() -> None:
    part = {"name": "x.sh", "type": "text/x-shellscript", "content": "true"}
    group = a_group(additionalUserData=[part])

    (found,) = a_setup("Node", group, cloud="aws", zones=["us-east-1a"]).user_data

    assert (found.name, found.type, found.content) == ("x.sh", "text/x-shellscript", "true")
    assert refused("Node", group).keys() == {"instanceGroups.nodes.additionalUserData"}
    odd = a_group(additionalUserData=[{"type": "text/plain", "charset": "utf-8"}])
    at = "instanceGroups.nodes.additionalUserData[0]"
    assert refused("Node", odd, cloud="aws", zones=["us-east-1a"]).keys() == {f"{at}.type", f"{at}.charset"}


def test_the_inside_of_the_cluster_is_reached_without_the_proxy() -> None:
    proxy = a_setup("Node", egressProxy={"httpProxy": {"host": "10.0.0.1", "port": 3128}, "excludes": "a.b, c"}).proxy

    assert proxy is not None
    assert proxy.url == "http://10.0.0.1:3128"
    assert proxy.excludes[:6] == ("a.b", "c", "127.0.0.1", "::1", "localhost", "169.254.169.254")
    assert {"api.dev.example.com", "api.internal.dev.example.com", ".svc", ".cluster.local"} < set(proxy.excludes)
    assert proxy.environment["no_proxy"] == proxy.environment["NO_PROXY"] == ",".join(proxy.excludes)
    assert refused(egressProxy={"excludes": "a"}).keys() == {"egressProxy.httpProxy.host"}


@pytest.mark.parametrize("host", ["user:secret@10.0.0.1", "http://user:secret@10.0.0.1", "a b", "a\nb", 'a";'])
def test_a_proxy_with_a_password_never_reaches_the_launch_data(host: str) -> None:
    found = refused(egressProxy={"httpProxy": {"host": host, "port": 3128}})

    assert found.keys() == {"egressProxy.httpProxy.host"}
    assert "secret" not in str(found)


def test_options_of_a_disk_that_are_one_text_are_not_taken_letter_by_letter() -> None:
    mount = {"device": "/dev/sdb", "path": "/data", "mountOptions": "noatime", "formatOptions": "-O quota"}

    assert refused("Node", a_group(volumeMounts=[mount])).keys() == {
        f"instanceGroups.nodes.volumeMounts[0].{name}" for name in ("mountOptions", "formatOptions")
    }


def test_a_hook_with_an_open_quote_or_a_list_of_variables_is_named() -> None:
    odd = {"image": "x", "command": "sh -c 'true", "environment": ["A=1"]}

    assert refused(hooks=[{"execContainer": odd}, {"execContainer": {"image": "x", "command": {"a": 1}}}]).keys() == {
        "hooks[0].execContainer.command", "hooks[0].execContainer.environment", "hooks[1].execContainer.command",
    }  # fmt: skip


def test_the_clock_is_left_alone_only_if_the_spec_says_so() -> None:
    assert a_setup("Node").time_sync
    assert a_setup("Node", ntp={}).time_sync
    assert not a_setup("Node", ntp={"managed": False}).time_sync
    assert refused(ntp={"managed": "maybe", "servers": ["x"]}).keys() == {"ntp.managed", "ntp.servers"}


def test_ipvs_needs_modules_of_its_own() -> None:
    assert "ip_vs" in a_setup("Node", kubeProxy={"proxyMode": "ipvs"}).modules
    assert a_setup("Node").modules == ()


def test_containerd_is_pinned_only_by_another_version_or_by_packages_with_checksums() -> None:
    given = {"urlAmd64": "https://x/c.tgz", "hashAmd64": DIGEST}

    pinned = [
        a_setup("Node", containerd=each).runtime.pinned for each in ({}, {"version": "1.7.20"}, {"packages": given})
    ]

    assert pinned == [False, True, True]


def test_what_the_spec_itself_says_where_to_download_comes_with_its_digest() -> None:
    runc = {"version": "1.3.0", "packages": {"urlArm64": "https://x/runc", "hashArm64": f"sha256:{DIGEST.upper()}"}}
    config = completed(
        cloud="metal", nodes=1,
        containerd={"packages": {"urlAmd64": "https://x/c.tgz", "hashAmd64": DIGEST}, "runc": runc},
    )  # fmt: skip

    assert pinned_assets(config, "nodes") == (
        AssetSetup(name="containerd", sha256=DIGEST, urls=("https://x/c.tgz",), processor="x86_64"),
        AssetSetup(name="runc", sha256=DIGEST, urls=("https://x/runc",), processor="aarch64"),
    )


@pytest.mark.parametrize(
    ("containerd", "paths"),
    [
        ({"nvidiaGPU": {"enabled": True}}, {"nvidiaGPU"}),
        ({"gvisor": {"enabled": True}}, {"gvisor"}),
        ({"useECRCredentialsForMirrors": True}, {"useECRCredentialsForMirrors"}),
        ({"installCriCtl": True, "installNerdCtl": True}, {"installCriCtl", "installNerdCtl"}),
        ({"logLevel": "loud"}, {"logLevel"}),
        ({"version": "newest"}, {"version"}),
        ({"configOverride": "[a"}, {"configOverride"}),
        ({"configAdditions": {"a b": 1}}, {"configAdditions.a b"}),
        ({"packages": {"urlAmd64": "https://x"}}, {"packages.hashAmd64"}),
        (
            {"packages": {"hashArm64": "12", "urlArm64": "https://x", "mirror": "y"}},
            {"packages.hashArm64", "packages.mirror"},
        ),
        ({"nri": {"socket": "/x"}}, {"nri.socket"}),
    ],
    ids=lambda each: " ".join(sorted(each)),  # the same in every process, which text of a set is not
)
def test_settings_of_containerd_that_are_not_carried_out_are_named(containerd: dict[str, Any], paths: set[str]) -> None:
    assert refused(containerd=containerd).keys() == {f"containerd.{each}" for each in paths}


def test_a_version_of_runc_needs_its_digest() -> None:
    config = completed(cloud="metal", nodes=1, containerd={"runc": {"version": "1.2.3"}})

    with pytest.raises(InvalidSpec, match="protokube has no digest of this version"):
        derived(config, "Node", assets=assets(("kubelet",)))
    assert derived(config, "Node").setup.runtime.version


def test_tools_are_installed_where_their_assets_are_known() -> None:
    config = completed(cloud="metal", nodes=1, containerd={"installCriCtl": True})

    setup = derived(config, "Node", assets=(*assets(), an_asset("crictl"))).setup

    assert [(each.asset, each.path, each.member) for each in setup.programs] == [
        ("crictl", "/usr/local/bin/crictl", "crictl")
    ]
    assert "crictl" not in PROGRAMS


def test_a_whole_configuration_file_leaves_other_settings_without_effect() -> None:
    override = {"configOverride": "version = 2\n", "logLevel": "debug", "registryMirrors": {"docker.io": ["https://m"]}}

    assert warned(containerd=override).keys() == {"containerd.logLevel", "containerd.registryMirrors"}


def test_a_group_may_have_a_runtime_of_its_own() -> None:
    group = a_group(containerd={"logLevel": "debug"})

    setup = a_setup("Node", group, containerd={"sandboxImage": "pause:1"})

    assert (setup.runtime.log_level, setup.runtime.sandbox_image) == ("debug", "pause:1")
    wrong = refused("Node", a_group(containerd={"logLevel": "loud"}))
    assert wrong.keys() == {"instanceGroups.nodes.containerd.logLevel"}
