"""Tasks as values: each is one piece of the state of an operating system that nodeup owns.

A task says what should be true, never how to get there: so the same list serves the machine, a plan of what would
change, a cloud-init document and the root of an image. Paths are those of the machine, also where its root is a folder.
`key` names a task in dependencies, traces and messages; two tasks of one key are an error of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What all kinds have in common."""

    after: tuple[str, ...] = ()
    """Keys of tasks that must be done before, besides those that `order` derives from paths, owners and units."""

    @property
    def key(self) -> str:
        """Its kind and what it is about: `file /etc/hosts`."""
        return f"{type(self).__name__.lower()} {self.about}"

    @property
    def about(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class File(Task):
    """A regular file with exactly this content, mode and owner."""

    path: str
    content: bytes = field(repr=False)
    mode: int = 0o644
    owner: str = "root"
    group: str = "root"
    secret: bool = False
    """Whether its content must appear in no log, trace, plan or launch data."""
    keep: bool = False
    """Whether one that exists is left as it is: written for a first boot only."""

    @property
    def about(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory(Task):
    """A directory; what is in it is not touched."""

    path: str
    mode: int = 0o755
    owner: str = "root"
    group: str = "root"

    @property
    def about(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Task):
    """A symbolic link."""

    path: str
    target: str

    @property
    def about(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone(Task):
    """No file and no link at a path that is ours; a directory there is refused."""

    path: str

    @property
    def about(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Task):
    """A system group; one that exists with another id than a stated one is refused, never changed."""

    name: str
    gid: int | None = None

    @property
    def about(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class User(Task):
    """A system user without a password; one that exists with other values is refused, never changed."""

    name: str
    uid: int | None = None
    group: str = ""
    home: str = "/nonexistent"
    shell: str = "/usr/sbin/nologin"

    @property
    def about(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages(Task):
    """Packages of the distribution, installed together; no service starts by it."""

    names: tuple[str, ...]
    """In the words of the package manager; `containerd` or `containerd=1.6.20`."""
    purpose: str = ""
    """Names the task in its key, where a list of packages would be long, or change."""
    held: tuple[str, ...] | None = None
    """Those of `names` that no update of the system changes: they are held at their versions. None: all."""

    @property
    def holds(self) -> tuple[str, ...]:
        """Names alone, without versions."""
        return tuple(name.partition("=")[0] for name in (self.names if self.held is None else self.held))

    @property
    def about(self) -> str:
        return self.purpose or " ".join(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(Task):
    """A systemd unit: its file, whether it is enabled, and whether it runs."""

    name: str
    content: str | None = field(default=None, repr=False)
    """Its file below /etc/systemd/system; None where a package brings it."""
    drop_ins: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Content by file name, in /etc/systemd/system/NAME.d."""
    enabled: bool | None = None
    """None: left as it is."""
    running: bool | None = None
    """None: neither started nor stopped. The agent starts the kubelet, so nodeup does not."""
    restart_on: tuple[str, ...] = ()
    """Keys of tasks whose change restarts it, if it runs. A change of its own file does so, too. Both only if `running`
    is True: whoever else starts a unit knows when it may restart."""

    @property
    def about(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysctl(Task):
    """Kernel parameters: a file below /etc/sysctl.d for each boot, and the values in force."""

    file: str
    """Its name: `99-protokube.conf`."""
    values: Mapping[str, str]

    @property
    def about(self) -> str:
        return self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Module(Task):
    """Kernel modules: a file below /etc/modules-load.d for each boot, and loaded now (or built into the kernel)."""

    file: str
    names: tuple[str, ...]

    @property
    def about(self) -> str:
        return self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount(Task):
    """A disk of the user's, mounted by a systemd mount unit; formatted only if `format` and proven blank."""

    device: str
    path: str
    file_system: str = "ext4"
    options: tuple[str, ...] = ("defaults",)
    format: bool = False
    format_options: tuple[str, ...] = ()
    """Arguments of mkfs."""

    @property
    def about(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset(Task):
    """A file that is downloaded, identified by its digest alone: which of its sources had it makes no difference."""

    name: str
    """By which other tasks and messages name it: `kubelet`. In the cache it is named by its digest."""
    sha256: str
    urls: tuple[str, ...]
    """https, http and file URLs, in the order in which they are tried."""
    size: int | None = None

    @property
    def about(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed(Task):
    """A program from an asset: the asset itself, or one or all members of an archive."""

    asset: str
    """The name of the Asset task."""
    path: str
    """Where it goes: a file; for `member` "*" the directory of all members."""
    member: str = ""
    """Path within the archive; empty: the asset is the file; `bin/*`: all files there, by their base names."""
    mode: int = 0o755

    @property
    def about(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Image(Task):
    """A container image that is imported into containerd from an asset, pinned where the runtime honours that."""

    name: str
    asset: str

    @property
    def about(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(Task):
    """One version of protokube's single file: installed beside the former one, and put to use by a link."""

    version: str
    sha256: str
    source: str
    """The file to install, on the machine where nodeup runs."""

    @property
    def name(self) -> str:
        """Of its directory: the same version may be built again with other content."""
        return f"{self.version}-{self.sha256[:12]}"

    @property
    def about(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Task):
    """A command that makes true what `check` finds false: it is run only if `check` fails, and must succeed then."""

    name: str
    run: tuple[str, ...]
    check: tuple[str, ...]
    seconds: float = 600.0

    @property
    def about(self) -> str:
        return self.name


KINDS: tuple[type[Task], ...] = (
    File, Directory, Link, Gone, Group, User, Packages, Unit, Sysctl, Module, Mount, Asset, Installed, Image, Version,
    Command,
)  # fmt: skip
