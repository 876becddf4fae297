"""The settings of containerd for the machines of one group."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from typing import Any

from protokube.config.complete import Config
from protokube.config.images import CONTAINERD, by_version
from protokube.launch.setups.notes import Notes
from protokube.launch.setups.values import CONTAINERD as ARCHIVE
from protokube.launch.setups.values import RUNC, SOCKET, AssetSetup, RuntimeSetup
from protokube.spec import version as versions
from protokube.spec.decode import Tree

LEVELS = ("trace", "debug", "info", "warn", "error", "fatal", "panic")
NOT_CARRIED_OUT = {
    "nvidiaGPU": "protokube does not install NVIDIA's runtime",
    "gvisor": "protokube does not install gVisor",
}
TOOLS = {"installCriCtl": "crictl", "installNerdCtl": "nerdctl"}
"""Fields that want a program, and the asset that has it."""
NRI = {
    "pluginRegistrationTimeout": "plugin_registration_timeout",
    "pluginRequestTimeout": "plugin_request_timeout",
}
PROCESSORS = {"Amd64": "x86_64", "Arm64": "aarch64"}
PACKAGES = tuple(f"{part}{processor}" for processor in PROCESSORS for part in ("url", "hash"))


def runtime(config: Config, group: str, assets: Collection[str], notes: Notes) -> RuntimeSetup:
    """Of the group where it has settings of its own; they are complete then."""
    own = config.groups[group].get("containerd")
    at = f"instanceGroups.{group}.containerd" if own else "containerd"
    tree: Tree = own or config.cluster.get("containerd") or {}
    version = versions.parse(config.cluster["kubernetesVersion"]) or versions.DEFAULT
    ours = by_version(CONTAINERD, version)
    text = str(tree.get("version") or ours).removeprefix("v")
    if versions.parse(text) is None:
        notes.problem(f"{at}.version", f"{text!r} is not a version", f"such as {ours}")
    _refuse(tree, at, assets, notes)
    nri = tree.get("nri") or {}
    notes.only(nri, ("enabled", *NRI), f"{at}.nri")
    given = {field: name for field, name in NRI.items() if nri.get(field)}
    return RuntimeSetup(
        version=text,
        pinned=text != ours or bool(tree.get("packages")),
        install=not tree.get("skipInstall"),
        address=tree.get("address") or SOCKET,
        root=tree.get("root") or "/var/lib/containerd",
        state=tree.get("state") or "/run/containerd",
        log_level=tree.get("logLevel") or "",
        sandbox_image=tree.get("sandboxImage") or "",
        config=_override(tree, at, notes),
        additions=_additions(tree, at, notes),
        mirrors={name: tuple(urls) for name, urls in (tree.get("registryMirrors") or {}).items()},
        selinux=bool(tree.get("selinuxEnabled")),
        nri=nri.get("enabled"),
        nri_timeouts={name: str(nri[field]) for field, name in given.items()},
    )


def pinned_assets(config: Config, group: str) -> tuple[AssetSetup, ...]:
    """What the spec itself says where to download, with its digest: containerd and runc, by processor."""
    tree: Tree = config.groups[group].get("containerd") or config.cluster.get("containerd") or {}
    found = []
    for name, packages in ((ARCHIVE, tree.get("packages")), (RUNC, (tree.get("runc") or {}).get("packages"))):
        for suffix, processor in PROCESSORS.items():
            url, digest = ((packages or {}).get(f"{part}{suffix}") for part in ("url", "hash"))
            if url and digest:
                digest = str(digest).removeprefix("sha256:").lower()
                found.append(AssetSetup(name=name, sha256=digest, urls=(str(url),), processor=processor))
    return tuple(found)


def _refuse(tree: Tree, at: str, assets: Collection[str], notes: Notes) -> None:
    for field, why in NOT_CARRIED_OUT.items():
        if (tree.get(field) or {}).get("enabled"):
            notes.problem(f"{at}.{field}", why, "install it in the machine image, and add it by `configAdditions`")
    if tree.get("useECRCredentialsForMirrors"):
        notes.problem(f"{at}.useECRCredentialsForMirrors", "protokube gives mirrors no credentials", "remove it")
    for field, asset in TOOLS.items():
        if tree.get(field) and asset not in assets:
            notes.problem(f"{at}.{field}", f"protokube has no digest of {asset}", "add it to the machine image")
    if (level := tree.get("logLevel")) and level not in LEVELS:
        notes.problem(f"{at}.logLevel", f"{level!r} is not one of {', '.join(LEVELS)}")
    runc = tree.get("runc") or {}
    notes.only(runc, ("version", "packages"), f"{at}.runc")
    if runc.get("version") and not runc.get("packages") and RUNC not in assets:
        notes.problem(f"{at}.runc.version", "protokube has no digest of this version", "give `packages` with checksums")
    for where, packages in (("packages", tree.get("packages")), ("runc.packages", runc.get("packages"))):
        _packages(packages or {}, f"{at}.{where}", notes)


def _packages(packages: Tree, at: str, notes: Notes) -> None:
    notes.only(packages, PACKAGES, at)
    for processor in PROCESSORS:
        url, digest = (packages.get(f"{part}{processor}") for part in ("url", "hash"))
        if bool(url) != bool(digest):
            lacks = f"hash{processor}" if url else f"url{processor}"
            notes.problem(f"{at}.{lacks}", "is not given", "an address and its SHA-256 belong together")
        elif digest and not _is_digest(str(digest)):
            notes.problem(f"{at}.hash{processor}", "is not a SHA-256 digest", "64 hexadecimal digits")


def _is_digest(text: str) -> bool:
    digits = text.removeprefix("sha256:")
    return len(digits) == 64 and all(each in "0123456789abcdefABCDEF" for each in digits)


def _override(tree: Tree, at: str, notes: Notes) -> str:
    text = str(tree.get("configOverride") or "")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        notes.problem(f"{at}.configOverride", f"is not TOML: {error}")
    if text:
        for field in ("configAdditions", "registryMirrors", "logLevel", "root", "state", "nri", "selinuxEnabled"):
            if tree.get(field):
                notes.warn(f"{at}.{field}", "ignored: `configOverride` is the whole configuration file", "keep one")
    return text


def _additions(tree: Tree, at: str, notes: Notes) -> dict[str, Any]:
    given = tree.get("configAdditions") or {}
    for key in given:
        try:
            tomllib.loads(f"{key} = 0")
        except tomllib.TOMLDecodeError:
            hint = 'as TOML writes it: plugins."io.containerd.grpc.v1.cri".enable_selinux'
            notes.problem(f"{at}.configAdditions.{key}", "is not a dotted key", hint)
    return dict(given)
