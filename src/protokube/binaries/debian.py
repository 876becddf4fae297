"""Build Kubernetes from Debian's source package: no network is needed but Debian's, and nothing comes ready-made.

The source carries everything it depends on, so Go fetches nothing. It takes a quarter of an hour and some gigabytes
on two processors. The machine's own list of packages is left as it is: sources are looked up through a list of our own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from protokube.binaries import shelf
from protokube.binaries.debian_mend import mend
from protokube.binaries.debian_sources import one_line_sources, stanza_sources, upstream_version
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS
from protokube.binaries.product import Release
from protokube.binaries.running import Runner
from protokube.binaries.telling import Teller
from protokube.errors import InvalidRequest, Refused, TryLater

NEEDED = (
    ("go", ("golang-go",)),
    ("rsync", ("rsync",)),
    ("make", ("make",)),
    ("dpkg-source", ("dpkg-dev",)),
    ("gcc", ("gcc", "libc6-dev")),
)
"""Programs, and the packages that bring them."""
APT = Path("/etc/apt")
VERSION = "1.20.2"
"""Of Debian 12: what is asked for by this name is built from its source."""
ROOM = 6_000_000_000


def build_from_debian(cache: Path, teller: Teller, asked: str | None = None, *, room: int = ROOM) -> Release:
    """Debian's version of Kubernetes, mended, in the cache; refused if another is asked for."""
    _can_build()
    with shelf.only_one(KUBERNETES, cache, teller) as kept:
        if asked and (found := KUBERNETES.find(asked, cache)):
            return found
        with shelf.building(kept, ".build", room) as work:
            return _build(work, kept, Runner(kept / "build.log", teller), asked)


def _build(work: Path, kept: Path, run: Runner, asked: str | None) -> Release:
    with run.teller.step("packages that the build needs"):
        _install(run, work)
    with run.teller.step("Debian's source package kubernetes"):
        source = _source(run, work)
    version = upstream_version(_told_by_changelog(source))
    if asked not in (None, version):
        raise InvalidRequest(f"Debian's source package is Kubernetes {version}", want=f"{asked}, which was asked for")
    if found := KUBERNETES.in_cache(version, kept.parent):
        return found
    with run.teller.step("what is too old in it is replaced"):
        mend(source, work, run)
    settings = build_settings(version, work, os.environ)
    made = source / "_output" / "local" / "go" / "bin"
    draft = shelf.draft(kept, version)
    for name in PROGRAMS:
        with run.teller.step(f"{name} {version} is built"):
            run(["nice", "-n", "5", "make", "all", f"WHAT=cmd/{name}"], source, settings)
            (made / name).replace(draft / name)
    return shelf.finish(KUBERNETES, draft, kept, version)


def build_settings(version: str, work: Path, ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of the build: Go without a network, and what git would tell it, since there is no git.

    What a `make` around us passes on would make this one look for helpers that it cannot reach.
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
        "KUBE_STATIC_OVERRIDES": "kubelet",  # as the others are: else all it shares with them is compiled once more
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
        run(["apt-get", "-q", wait, "update"], work)  # a fresh machine has no lists, an old one lists of what is gone
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
    """The machine's lists, for sources. In apt's own order: of two that name one place, the first may say less."""
    for index, path in enumerate((apt / "sources.list", *sorted((apt / "sources.list.d").glob("*")))):
        if path.suffix in (".list", ".sources") and path.is_file():
            derive = stanza_sources if path.suffix == ".sources" else one_line_sources
            (parts / f"{index:02}-{path.name}").write_text(derive(path.read_text("utf-8")), "utf-8")


def _told_by_changelog(source: Path) -> str:
    """`kubernetes (1.20.2-1) bookworm; …`: the version in brackets."""
    with (source / "debian" / "changelog").open(encoding="utf-8") as file:
        return file.readline().partition("(")[2].partition(")")[0]
