"""Build Kubernetes from Debian's source package: needs only Debian's mirrors, and uses no prebuilt binaries.

The source package vendors all dependencies, so Go downloads nothing. A build takes a quarter of an hour on two
processors and some gigabytes of disk. The machine's own apt lists stay unchanged: apt uses separate lists for sources.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from protokube.binaries import cache_folder
from protokube.binaries.debian_patch import patch
from protokube.binaries.debian_sources import one_line_sources, stanza_sources, upstream_version
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS
from protokube.binaries.product import Release
from protokube.binaries.progress import ProgressReporter
from protokube.binaries.running import Runner
from protokube.errors import InvalidRequest, Refused, TryLater

NEEDED = (
    ("go", ("golang-go",)),
    ("rsync", ("rsync",)),
    ("make", ("make",)),
    ("dpkg-source", ("dpkg-dev",)),
    ("gcc", ("gcc", "libc6-dev")),
)
"""Programs that the build needs, and the Debian packages that provide them."""
APT = Path("/etc/apt")
VERSION = "1.20.2"
"""The version in Debian 12; a build of this version uses Debian's source."""
ROOM = 6_000_000_000


def build_from_debian(
    cache: Path, progress: ProgressReporter, requested: str | None = None, *, room: int = ROOM
) -> Release:
    """Build Debian's version of Kubernetes, patched, into the cache; InvalidRequest if another version is requested."""
    _can_build()
    with cache_folder.locked(KUBERNETES, cache, progress) as kept:
        if requested and (found := KUBERNETES.find(requested, cache)):
            return found
        with cache_folder.building(kept, ".build", room) as work:
            return _build(work, kept, Runner(kept / "build.log", progress), requested)


def _build(work: Path, kept: Path, run: Runner, requested: str | None) -> Release:
    with run.progress.step("packages that the build needs"):
        _install(run, work)
    with run.progress.step("Debian's source package kubernetes"):
        source = _source(run, work)
    version = upstream_version(_changelog_version(source))
    if requested not in (None, version):
        raise InvalidRequest(
            f"Debian's source package is Kubernetes {version}", want=f"{requested}, which was asked for"
        )
    if found := KUBERNETES.in_cache(version, kept.parent):
        return found
    with run.progress.step("outdated dependency replaced"):
        patch(source, work, run)
    settings = build_settings(version, work, os.environ)
    made = source / "_output" / "local" / "go" / "bin"
    draft = cache_folder.draft(kept, version)
    for name in PROGRAMS:
        with run.progress.step(f"{name} {version} is built"):
            run(["nice", "-n", "5", "make", "all", f"WHAT=cmd/{name}"], source, settings)
            (made / name).replace(draft / name)
    return cache_folder.finish(KUBERNETES, draft, kept, version)


def build_settings(version: str, work: Path, ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of the build: Go without a network, and the version, which is otherwise read from git.

    Variables of a `make` that runs us are dropped: the build would look for that make's job server.
    """
    foreign = ("MAKE", "MFLAGS", "GO", "KUBE_", "WHAT", "CDPATH")
    kept = {name: value for name, value in ours.items() if not name.startswith(foreign)}
    return {
        **kept,
        "HOME": kept.get("HOME", str(work)),
        "GOCACHE": str(work / "go-cache"),
        "GOFLAGS": "-mod=vendor",
        "GOPROXY": "off",
        "GO111MODULE": "on",
        "KUBE_GIT_VERSION": f"v{version}",
        "KUBE_GIT_COMMIT": "0" * 40,
        "KUBE_GIT_TREE_STATE": "clean",
        "KUBE_STATIC_OVERRIDES": "kubelet",  # static like the others; otherwise shared packages are compiled twice
    }


def _can_build() -> None:
    lacking = [tool for tool in ("apt-get", "dpkg") if shutil.which(tool) is None]
    packages = _lacking_packages()
    if lacking:
        raise Refused("Kubernetes can be built here on Debian only", saw=f"no {', no '.join(lacking)}")
    if packages and os.geteuid() != 0:
        raise Refused(
            "the build needs packages that are not installed",
            saw=f"no {', no '.join(packages)}",
            hint=f"run it as root, or install them: apt-get install {' '.join(packages)}",
        )


def _lacking_packages() -> list[str]:
    return [package for program, packages in NEEDED if shutil.which(program) is None for package in packages]


def _install(run: Runner, work: Path) -> None:
    packages = _lacking_packages()
    if not packages:
        return
    wait = "--option=DPkg::Lock::Timeout=600"  # another installation may be under way
    install = ["apt-get", "-q", "-y", wait, "--no-install-recommends", "install", *packages]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        run(install, work, quiet)
    except TryLater:
        run(["apt-get", "-q", wait, "update"], work)  # the lists are missing on a fresh machine, or outdated
        run(install, work, quiet)


def _source(run: Runner, work: Path) -> Path:
    parts, lists, unpacked = work / "sources", work / "lists", work / "source"
    for folder in (parts, lists / "partial", unpacked):
        folder.mkdir(parents=True)
    write_sources(APT, parts)
    options = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": parts,
        "Dir::State::lists": lists,
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-q", *(f"--option={name}={value}" for name, value in options.items())]
    run([*apt, "update"], unpacked)
    run([*apt, "source", "kubernetes"], unpacked)
    (source,) = (each for each in unpacked.iterdir() if each.is_dir())
    return source


def write_sources(apt: Path, parts: Path) -> None:
    """Write the machine's apt source lists with `deb-src` entries, in apt's order.

    The order matters where two lists name the same repository: the first one may have fewer options.
    """
    for index, path in enumerate((apt / "sources.list", *sorted((apt / "sources.list.d").glob("*")))):
        if path.suffix in (".list", ".sources") and path.is_file():
            derive = stanza_sources if path.suffix == ".sources" else one_line_sources
            (parts / f"{index:02}-{path.name}").write_text(derive(path.read_text("utf-8")), "utf-8")


def _changelog_version(source: Path) -> str:
    """`kubernetes (1.20.2-1) bookworm; …`: the version in brackets."""
    with (source / "debian" / "changelog").open(encoding="utf-8") as file:
        return file.readline().partition("(")[2].partition(")")[0]
