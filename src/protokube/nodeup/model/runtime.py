"""containerd: the distribution's own package where it fits the version of Kubernetes, else the archive of our choice.

A package gets security updates with the rest of the machine, and needs no download from elsewhere. It does not fit if
it is too old, if it is newer than an old kubelet understands, or if the spec asks for one version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protokube.launch.setups.values import CONTAINERD, RUNC, MachineSetup
from protokube.nodeup.distribution import available
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import assets, containerd_config, mounts, proxy
from protokube.nodeup.values import File, Image, Installed, Packages, Task, Unit
from protokube.spec import version as versions
from protokube.spec.version import Version

UNIT, CONFIG = "containerd.service", "/etc/containerd/config.toml"
PACKAGES = ("containerd", "containerd.io")
LEAST = {(0, 0): "1.5", (1, 26): "1.6"}
"""By version of Kubernetes. Mirrors are read from folders since 1.5; 1.26 speaks CRI v1 only, which 1.6 has."""
BELOW = {(0, 0): "2.0", (1, 23): ""}
"""containerd 2 speaks CRI v1 only, which kubelets have since 1.23."""
FOLDER, SBIN = "/usr/local/bin", "/usr/local/sbin"
TEXT = f"""\
[Unit]
Description=containerd container runtime
After=network.target local-fs.target

[Service]
Type=notify
ExecStart={FOLDER}/containerd
Restart=always
RestartSec=5s
# Containers outlive it, and it manages their cgroups.
KillMode=process
Delegate=yes
OOMScoreAdjust=-999
LimitNOFILE=infinity
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Where containerd comes from."""

    package: str = ""
    """Empty: the archive, or what the image has."""
    archive: bool = False
    version: Version | None = None
    """None where the image has it: then nobody said which."""
    why_not: str = ""
    """Why there is none, in words; else empty."""

    @property
    def ctr(self) -> str:
        """Its client."""
        if self.archive:
            return f"{FOLDER}/ctr"
        return "/usr/bin/ctr" if self.package else "ctr"


def choose(setup: MachineSetup, facts: Facts) -> Chosen:
    wanted = setup.runtime
    if not wanted.install:
        return Chosen()
    for package in PACKAGES:
        found = available(facts, package)
        if found and (found[:3] == _parse(wanted.version)[:3] if wanted.pinned else fits(setup, found)):
            return Chosen(package=package, version=found)
    missing = [name for name in (CONTAINERD, RUNC) if not setup.asset(name, facts.processor)]
    if not missing:
        return Chosen(archive=True, version=_parse(wanted.version))
    offered = [f"{package} {found}" for package in PACKAGES if (found := available(facts, package))]
    want = wanted.version if wanted.pinned else _range(setup)
    has = f"the distribution has {', '.join(offered)}" if offered else "the distribution has none"
    return Chosen(why_not=f"containerd {want} is wanted, {has}, and there is no archive of {' and '.join(missing)}")


def fits(setup: MachineSetup, found: Version) -> bool:
    least, below = _bounds(setup)
    return found >= least and (below is None or found < below)


def packages(setup: MachineSetup, facts: Facts) -> tuple[str, ...]:
    chosen = choose(setup, facts)
    return (chosen.package,) if chosen.package else ()


def runtime_tasks(setup: MachineSetup, facts: Facts, packages: Packages) -> Iterator[Task]:
    """`packages`: the task that brings its package."""
    chosen = choose(setup, facts)
    programs: list[str] = []
    if chosen.archive:
        for name, path, member in ((CONTAINERD, FOLDER, "bin/*"), (RUNC, f"{SBIN}/runc", "")):
            asset = assets.task(setup, facts, name)
            assert asset is not None
            program = Installed(asset=name, path=path, member=member, after=(asset.key,))
            yield from (asset, program)
            programs.append(program.key)
    else:
        programs.append(packages.key)
    text = containerd_config.text(setup, facts, chosen.version)
    # After the package, which has a file of its own there: dpkg would leave it beside ours.
    config = File(path=CONFIG, content=text.encode(), after=tuple(programs))
    yield config
    for path, text in containerd_config.hosts(setup).items():
        yield File(path=path, content=text.encode())  # read at each pull, so it needs no restart
    yield Unit(
        name=UNIT,
        content=TEXT if chosen.archive else None,
        drop_ins=proxy.drop_ins(setup),
        enabled=True,
        running=True,
        restart_on=(config.key, *programs),
        after=(*programs, config.key, *mounts.keys(setup, facts)),
    )


def image_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    """Images that must be here before a pod asks for them."""
    archives = {name: assets.task(setup, facts, name) for name in sorted({each.asset for each in setup.images})}
    yield from (each for each in archives.values() if each)
    for image in setup.images:
        asset = archives[image.asset]
        if asset:  # checks names the others
            yield Image(name=image.name, asset=asset.name, after=(asset.key, f"unit {UNIT}"))


def _bounds(setup: MachineSetup) -> tuple[Version, Version | None]:
    version = versions.parse(setup.kubernetes) or versions.DEFAULT
    least, below = (_newest(table, version) for table in (LEAST, BELOW))
    return _parse(least), _parse(below) if below else None


def _newest(table: Mapping[tuple[int, int], str], version: Version) -> str:
    """The last entry that is not newer than this version."""
    return [text for since, text in table.items() if since <= (version.major, version.minor)][-1]


def _range(setup: MachineSetup) -> str:
    least, below = _bounds(setup)
    return f"{least.short} or later" + (f", below {below.short}," if below else "")


def _parse(text: str) -> Version:
    return versions.parse(text) or Version(0, 0)
