"""The assets of machines of one role: resolved from releases, from the cache of this machine, and from archives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from protokube.binaries.coredns import COREDNS
from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.progress import ProgressReporter
from protokube.config.complete import Config
from protokube.errors import InvalidRequest, Refused
from protokube.images import build
from protokube.launch import cloud, published
from protokube.nodeup.assets.resolve import Origins, of_file, resolve
from protokube.nodeup.values import Asset

SEVERAL = "PROJECT=URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineAssets:
    """What a machine downloads."""

    assets: tuple[Asset, ...]
    images: Mapping[str, str]
    """By name of the image: the asset that is its archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which assets, and from where."""

    master: bool
    processor: str
    here: str
    """The processor of this machine."""
    cache: Path
    origins: Origins
    archives: Mapping[str, Path] = field(default_factory=dict)
    """Archives that the user has, by name of the image."""
    group: str = ""
    """Of the machine, if it is known."""
    given: Collection[str] = ()
    """Names of assets that the spec has, with their digests."""


def find(config: Config, wish: Wish, progress: ProgressReporter) -> MachineAssets:
    """All of them. Refused if there is no archive of an image that the role runs."""
    needed = [
        each
        for each in published.needed(config, master=wish.master, group=wish.group)
        if each.published.asset not in wish.given
    ]
    names = published.image_names(config, master=wish.master)
    if unknown := sorted(wish.archives.keys() - set(names.values())):
        raise InvalidRequest(f"no machine of this role runs {unknown[0]}", want=", ".join(sorted(names.values())))
    built = _built(config, wish, progress)
    own = {**built, **wish.archives}
    files = [each for each in needed if not each.image or each.image not in own]
    assets = list(resolve(files, wish.processor, wish.here, wish.origins, progress))
    images = {each.image: each.published.asset for each in files if each.image}
    for component, name in sorted(names.items()):
        if name in own:
            assets.append(of_file(f"{component}.tar", own[name]))
            images[name] = f"{component}.tar"
    if missing := sorted(set(names.values()) - images.keys()):
        hint = f"name one: --image {missing[0]}=FILE, as `docker save` or `ctr images export` writes it"
        raise Refused("there is no archive of some images", saw=f"none of {', '.join(missing)}", hint=hint)
    return MachineAssets(assets=tuple(assets), images=images)


def pairs(option: str, texts: Sequence[str], names: str) -> list[tuple[str, str]]:
    """The two parts of each text of an option that may be repeated. InvalidRequest for anything else."""
    found = [text.partition("=") for text in texts]
    if wrong := ["".join(parts) for parts in found if not (parts[0] and parts[2])]:
        raise InvalidRequest(f"{option} {wrong[0]!r} has no two parts", want=f"{option} {names}")
    return [(name, value) for name, _, value in found]


def origins(releases: Sequence[str], mirrors: Sequence[str], cache: Path) -> Origins:
    """From options."""
    found: dict[str, tuple[str, ...]] = {}
    for project, url in pairs("--mirror", mirrors, SEVERAL):
        found[project] = (*found.get(project, ()), url)
    return Origins(releases=dict(pairs("--release", releases, SEVERAL)), mirrors=found, cache=cache)


def _built(config: Config, wish: Wish, progress: ProgressReporter) -> dict[str, Path]:
    """Images of the programs in the cache, if it has this version of Kubernetes and is of that processor."""
    from protokube.binaries import executables
    from protokube.local.node import kubehost

    version = published.kubernetes_version(config)
    release = KUBERNETES.in_cache(version, wish.cache)
    etcd = ETCD.find(None, wish.cache)
    if release is None or etcd is None or wish.processor != wish.here:
        return {}
    names, coredns = cloud.images(config), COREDNS.find(None, wish.cache)
    programs = kubehost.Programs(
        kubernetes=release.folder, etcd=etcd.programs["etcd"], coredns=coredns.programs["coredns"] if coredns else None
    )
    package, inside = kubehost.BUSYBOX
    with progress.step("images of the programs in the cache"):
        busybox = executables.unpack(package, wish.cache) / inside
        found = [
            *kubehost.wanted_images(names, programs.kubernetes, programs.etcd, busybox),
            *kubehost.network_images(names, programs, busybox, wish.cache),
            *kubehost.own_images(names),
        ]
        ours = set(published.image_names(config, master=wish.master).values()) - wish.archives.keys()
        return {each.name: build.keep(each, wish.cache / "images") for each in found if each.name in ours}
