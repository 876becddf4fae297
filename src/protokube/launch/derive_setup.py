"""Make the setup of a machine from a complete configuration.

Separate from `setup`, which holds the types: a machine must not import the packages that complete a configuration.
Each field of the spec that is about machines is carried out, or named in a problem or a warning: `OF_CLUSTER` and
`OF_GROUP` list all of them. A problem is what would make another machine than the one asked for.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protokube.config import files
from protokube.config.complete import Config
from protokube.errors import InvalidRequest, InvalidSpec, NotFound, Problem
from protokube.launch.boot import LaunchDocument
from protokube.launch.derive import kubelet_of
from protokube.launch.setups.hooks import hooks
from protokube.launch.setups.notes import Notes
from protokube.launch.setups.runtime import runtime
from protokube.launch.setups.values import (
    MASTER,
    NODE,
    AssetSetup,
    FileSetup,
    ImageSetup,
    LogRotation,
    MachineSetup,
    MountSetup,
    ProgramSetup,
    ProxySetup,
    UserDataPart,
)  # fmt: skip
from protokube.nearest import near
from protokube.spec.decode import Tree

OF_CLUSTER = (
    "containerRuntime", "containerd", "docker", "egressProxy", "fileAssets", "hooks", "kubelet", "kubernetesVersion",
    "masterKubelet", "ntp", "packages", "sshPublicKeys", "sysctlParameters", "updatePolicy",
)  # fmt: skip
OF_GROUP = (
    "additionalUserData", "containerd", "fileAssets", "hooks", "kubelet", "packages", "role", "sysctlParameters",
    "updatePolicy", "volumeMounts",
)  # fmt: skip
MOUNT_FIELDS = ("device", "path", "filesystem", "formatOptions", "mountOptions")
FILE_SYSTEMS = ("ext4", "xfs")
PART_FIELDS = ("name", "type", "content")
PART_TYPES = (
    "text/cloud-boothook", "text/cloud-config", "text/cloud-config-archive", "text/part-handler", "text/upstart-job",
    "text/x-include-once-url", "text/x-include-url", "text/x-shellscript",
)  # fmt: skip
SSH_KEY = re.compile(r"(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}( .*)?")
URL = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+")
PARAMETER = re.compile(r"([A-Za-z0-9_./*-]+)\s*=\s*(.*)")
IPVS = ("ip_vs", "ip_vs_rr", "ip_vs_sh", "ip_vs_wrr", "nf_conntrack")
LOGS = tuple(
    f"/var/log/{name}.log"
    for name in (
        "etcd", "etcd-events", "kube-addons", "kube-apiserver", "kube-controller-manager", "kube-proxy",
        "kube-scheduler", "kubelet",
    )
)  # fmt: skip
"""Where components log that are told to log into files, as in the original."""
NEVER_PROXIED = ("127.0.0.1", "::1", "localhost", "169.254.169.254")
PLACED = {
    "crictl": ProgramSetup(asset="crictl", path="/usr/local/bin/crictl", member="crictl"),
    "nerdctl": ProgramSetup(asset="nerdctl", path="/usr/local/bin/nerdctl", member="nerdctl"),
}
"""Where assets go that the model does not place itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A setup, and what the user should know about it."""

    setup: MachineSetup
    warnings: tuple[Problem, ...]


def derive_setup(
    config: Config,
    group: str,
    *,
    assets: Sequence[AssetSetup] = (),
    images: Mapping[str, str] | None = None,
    agent: LaunchDocument | None = None,
    documents: Sequence[FileSetup] = (),
    node_name: str = "",
    address: str = "",
) -> Derived:
    """The setup of the machines of one group, or of the one machine that `node_name` names. InvalidSpec otherwise.

    `assets`: what this group needs, resolved; `images`: the asset of each image to preload, by its name; `agent`: the
    launch document of masters; `documents`: files that it refers to.
    """
    notes = Notes(config.ledger)
    tree = machine_group(config, group)
    cluster, at = config.cluster, f"instanceGroups.{group}"
    both = ((at, tree), ("", cluster))
    master = tree["role"] == MASTER
    _docker(cluster, notes)
    own = runtime(config, group, {each.name for each in assets}, notes)
    parts = _user_data(tree, at, cluster["cloud"], notes)
    setup = MachineSetup(
        cluster=config.name,
        role=tree["role"],
        group=group,
        kubernetes=cluster["kubernetesVersion"],
        kubelet=(agent.master.kubelets.get(group) if agent else None) or kubelet_of(config, group),
        runtime=own,
        node_name=node_name,
        address=address,
        agent=json.loads(json.dumps(agent.to_tree())) if agent is not None else None,
        documents=tuple(documents),
        assets=tuple(assets),
        programs=tuple(PLACED[each] for each in sorted({each.name for each in assets} & PLACED.keys())),
        images=tuple(ImageSetup(name=name, asset=asset) for name, asset in sorted((images or {}).items())),
        packages=tuple(dict.fromkeys([*(cluster.get("packages") or ()), *(tree.get("packages") or ())])),
        files=_files(both, tree["role"]),
        hooks=hooks(both, tree["role"], notes),
        mounts=_mounts(tree, at, notes),
        ssh_keys=_ssh_keys(cluster, notes),
        sysctls=_sysctls(both, notes),
        modules=IPVS if _is_ipvs(cluster) else (),
        proxy=_proxy(cluster, config.name, notes),
        time_sync=_time_sync(cluster, notes),
        update_policy=tree.get("updatePolicy") or cluster.get("updatePolicy") or "",
        log_rotation=LogRotation(files=LOGS),
        user_data=parts,
        secrets=_secrets(cluster, master),
    )
    if notes.problems:
        raise InvalidSpec(notes.problems)
    return Derived(setup=setup, warnings=tuple(notes.warnings))


def machine_group(config: Config, group: str) -> Tree:
    """NotFound, or InvalidRequest for one whose machines run no kubelet."""
    tree = config.groups.get(group)
    if tree is None:
        hint = near(group, config.groups) or f"there are {', '.join(config.groups)}"
        raise NotFound(f"there is no instance group {group}", hint=hint)
    if tree["role"] not in (MASTER, NODE):
        raise InvalidRequest(
            f"machines of {group} run no kubelet", saw=f"role {tree['role']}", want=f"role {MASTER} or {NODE}"
        )
    return tree


def _docker(cluster: Tree, notes: Notes) -> None:
    if cluster["containerRuntime"] == "docker":
        notes.problem(
            "containerRuntime", "protokube does not install Docker", "use containerd, which every version supports"
        )
    elif cluster.get("docker"):
        notes.warn("docker", "ignored: the container runtime is containerd", "remove it")


def _files(both: Sequence[tuple[str, Tree]], role: str) -> tuple[FileSetup, ...]:
    """The group's first; the first of a path wins. `config.check` has checked each."""
    found: dict[str, FileSetup] = {}
    for _, holder in both:
        for name, asset in (holder.get("fileAssets") or {}).items():
            if files.is_for(asset, role):
                path, text = files.place(name, asset), b64encode(files.content(asset)).decode()
                found.setdefault(path, FileSetup(path=path, content=text, mode=files.mode(asset)))
    return tuple(found[path] for path in sorted(found))


def _mounts(group: Tree, at: str, notes: Notes) -> tuple[MountSetup, ...]:
    found = []
    for index, each in enumerate(group.get("volumeMounts") or ()):
        here = f"{at}.volumeMounts[{index}]"
        notes.only(each, MOUNT_FIELDS, here)
        kind = each.get("filesystem") or "ext4"
        if kind not in FILE_SYSTEMS:
            notes.problem(f"{here}.filesystem", f"{kind!r} is not one of {', '.join(FILE_SYSTEMS)}")
        for name in ("device", "path"):
            if not str(each.get(name) or "").startswith("/"):
                notes.problem(f"{here}.{name}", "is not an absolute path")
        for name in ("mountOptions", "formatOptions"):
            if not isinstance(each.get(name) or [], list):
                notes.problem(f"{here}.{name}", "is not a list")
        found.append(
            MountSetup(
                device=str(each.get("device")),
                path=str(each.get("path")),
                file_system=kind,
                options=tuple(map(str, each.get("mountOptions") or ("defaults",))),
                format_options=tuple(map(str, each.get("formatOptions") or ())),
            )
        )
    return tuple(found)


def _user_data(group: Tree, at: str, cloud: str, notes: Notes) -> tuple[UserDataPart, ...]:
    given = group.get("additionalUserData") or ()
    if given and cloud in ("metal", "local"):
        message = "it is for cloud-init, which runs on no machine of this cloud"
        notes.problem(f"{at}.additionalUserData", message, "use `hooks`, `fileAssets` and `packages`")
    found = []
    for index, each in enumerate(given):
        here = f"{at}.additionalUserData[{index}]"
        notes.only(each, PART_FIELDS, here)
        if each.get("type") not in PART_TYPES:
            notes.problem(f"{here}.type", f"{each.get('type')!r} is not one of {', '.join(PART_TYPES)}")
        name, content = str(each.get("name") or f"part-{index}"), str(each.get("content") or "")
        found.append(UserDataPart(name=name, type=str(each.get("type")), content=content))
    return tuple(found)


def _ssh_keys(cluster: Tree, notes: Notes) -> tuple[str, ...]:
    keys = [" ".join(key.split()) for key in cluster.get("sshPublicKeys") or ()]
    for index, key in enumerate(keys):
        if not SSH_KEY.fullmatch(key):
            hint = "the content of a file such as id_ed25519.pub"
            notes.problem(f"sshPublicKeys[{index}]", "is not a public key of SSH", hint)
    return tuple(dict.fromkeys(keys))


def _sysctls(both: Sequence[tuple[str, Tree]], notes: Notes) -> dict[str, str]:
    """The group's override the cluster's."""
    found: dict[str, str] = {}
    for at, holder in reversed(both):
        for index, line in enumerate(holder.get("sysctlParameters") or ()):
            if not (text := line.strip()) or text[0] in "#;":
                continue
            if match := PARAMETER.fullmatch(text):
                found[match[1].replace("/", ".")] = match[2].strip()
            else:
                here = f"{at}.sysctlParameters[{index}]".lstrip(".")
                notes.problem(here, f"{line!r} is not a setting", "NAME=VALUE, such as net.core.somaxconn=1024")
    return found


def _is_ipvs(cluster: Tree) -> bool:
    proxy = cluster["kubeProxy"]
    return bool(proxy["enabled"]) and proxy["proxyMode"] == "ipvs"


def _proxy(cluster: Tree, name: str, notes: Notes) -> ProxySetup | None:
    """As in the original, what is inside of the cluster is reached without the proxy."""
    egress = cluster.get("egressProxy") or {}
    http = egress.get("httpProxy") or {}
    if not http.get("host"):
        if egress:
            notes.problem("egressProxy.httpProxy.host", "is not given", "the name or address of the proxy")
        return None
    given = str(http["host"]).rstrip("/")
    host = given if "://" in given else f"http://{given}"
    if not URL.fullmatch(host):
        # The URL itself is not shown: it may have a password.
        message = "is not the name, address or URL of a proxy without a password, which all processes could read"
        notes.problem("egressProxy.httpProxy.host", message, "let the proxy pass machines by their addresses")
    domain = cluster["clusterDNSDomain"]
    ranges = [cluster.get("networkCIDR"), *(cluster.get("additionalNetworkCIDRs") or ())]
    ranges += [
        cluster["nonMasqueradeCIDR"],
        *cluster["podCIDR"].split(","),
        *cluster["serviceClusterIPRange"].split(","),
    ]
    excludes = [each.strip() for each in str(egress.get("excludes") or "").split(",")]
    excludes += [*NEVER_PROXIED, *(each for each in ranges if each)]
    excludes += [cluster["masterPublicName"], cluster["masterInternalName"], f".{name}", ".svc", f".{domain}"]
    port = f":{http['port']}" if http.get("port") else ""
    return ProxySetup(url=f"{host}{port}", excludes=tuple(dict.fromkeys(each.strip() for each in excludes if each)))


def _time_sync(cluster: Tree, notes: Notes) -> bool:
    ntp = cluster.get("ntp") or {}
    notes.only(ntp, ("managed",), "ntp")
    managed = ntp.get("managed")
    if managed not in (None, True, False):
        notes.problem("ntp.managed", f"{managed!r} is not true or false")
    return managed is not False


def _secrets(cluster: Tree, master: bool) -> tuple[str, ...]:
    """Names alone: the agent of a master gets them from the store, a node by joining."""
    if not master:
        return ("join",)
    pki = cluster["pki"]
    found = [f"authority/{name}" for name in pki["authorities"]]
    return tuple(sorted([*found, *(f"key-pair/{name}" for name in pki["keyPairs"])]))


__all__ = ["OF_CLUSTER", "OF_GROUP", "Derived", "derive_setup"]
