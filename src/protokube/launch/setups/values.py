"""The setup of a machine, as values; `setup` has what it is for, and reads and writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from protokube.launch.boot import PKI
from protokube.launch.machine import KubeletConfig

MASTER, NODE = "Master", "Node"
DOCUMENTS = "/etc/protokube"
KUBELET, KUBECTL, CONTAINERD, RUNC, CNI_PLUGINS = "kubelet", "kubectl", "containerd", "runc", "cni-plugins"
"""Names of assets that the model installs where it needs them. Others are installed by `programs`."""
SOCKET = "/run/containerd/containerd.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetSetup:
    """A file to download; see `nodeup.values.Asset`."""

    name: str
    sha256: str
    urls: tuple[str, ...]
    size: int | None = None
    processor: str = ""
    """The kind of machine it is for, as uname calls it; empty for all. Assets of one name differ in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSetup:
    """A program from an asset; see `nodeup.values.Installed`."""

    asset: str
    path: str
    member: str = ""
    mode: int = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSetup:
    """An image to import before any pod needs it."""

    name: str
    asset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSetup:
    """A file of the user's."""

    path: str
    content: str = field(repr=False)
    """Base64, since it may be binary."""
    mode: int = 0o440


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerHook:
    """A container that a hook runs: privileged, in the machine's network."""

    image: str
    """Its full name."""
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSetup:
    """A systemd unit of the user's."""

    name: str
    """With its suffix: `apply-sysctl.service`."""
    service: str = ""
    """The lines of its Service section."""
    unit: str = ""
    """Its whole file, in place of `service`."""
    container: ContainerHook | None = None
    """What it runs, in place of both."""
    requires: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    enabled: bool = True
    """Whether it is started, now and at each boot."""
    disabled: bool = False
    """Whether the unit of this name is stopped and disabled instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSetup:
    """A disk of the user's, formatted only if it is proven blank."""

    device: str
    path: str
    file_system: str = "ext4"
    options: tuple[str, ...] = ("defaults",)
    format_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySetup:
    """The HTTP proxy for outgoing connections."""

    url: str
    excludes: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Both spellings: curl reads HTTP_PROXY only in small letters, Go programs read either."""
        excludes = ",".join(self.excludes)
        upper = {"HTTP_PROXY": self.url, "HTTPS_PROXY": self.url, "NO_PROXY": excludes}
        return upper | {name.lower(): value for name, value in upper.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRotation:
    """Log files that their writers do not rotate."""

    files: tuple[str, ...] = ()
    keep: int = 5
    max_size: str = "100M"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDataPart:
    """A part of the user's for cloud-init."""

    name: str
    type: str
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSetup:
    """containerd."""

    version: str
    """Of the archive, which is used where the distribution's own package does not fit."""
    pinned: bool = False
    """Whether it must be this version: the user chose another one than protokube does."""
    install: bool = True
    """False where the image of the machine has it."""
    address: str = SOCKET
    root: str = "/var/lib/containerd"
    state: str = "/run/containerd"
    log_level: str = ""
    sandbox_image: str = ""
    config: str = ""
    """The whole configuration file, in place of ours."""
    additions: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the configuration file, by dotted keys as TOML writes them."""
    mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """URLs by registry, the first to be asked first."""
    selinux: bool = False
    nri: bool | None = None
    """Whether plugins of the Node Resource Interface are loaded; None for containerd's default."""
    nri_timeouts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSetup:
    """One machine, or each machine of one group where nothing here is about a single one."""

    cluster: str
    role: str
    group: str
    kubernetes: str
    """Its version."""
    kubelet: KubeletConfig
    runtime: RuntimeSetup
    node_name: str = ""
    """Its name as a machine and as a Node; empty where its cloud names it."""
    address: str = ""
    """The address that other machines reach it by; empty where the kubelet finds it."""
    agent: Mapping[str, Any] | None = None
    """The content of agent.json; None where no agent runs."""
    documents: tuple[FileSetup, ...] = ()
    """What the agent's document refers to, such as an inventory: below /etc/protokube."""
    pki: str = PKI
    assets: tuple[AssetSetup, ...] = ()
    programs: tuple[ProgramSetup, ...] = ()
    images: tuple[ImageSetup, ...] = ()
    packages: tuple[str, ...] = ()
    files: tuple[FileSetup, ...] = ()
    hooks: tuple[HookSetup, ...] = ()
    mounts: tuple[MountSetup, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    proxy: ProxySetup | None = None
    time_sync: bool = True
    """Whether protokube keeps the clock right."""
    update_policy: str = ""
    """`automatic`, `external`, or empty: as the image has it."""
    log_rotation: LogRotation = LogRotation()
    user_data: tuple[UserDataPart, ...] = ()
    """For cloud-init, not for nodeup."""
    secrets: tuple[str, ...] = ()
    """What the machine gets from elsewhere, from the store or by joining: names only."""

    @property
    def is_master(self) -> bool:
        return self.role == MASTER

    def asset(self, name: str, processor: str) -> AssetSetup | None:
        """The asset of this name for a kind of machine."""
        return next((each for each in self.assets if each.name == name and each.processor in ("", processor)), None)
