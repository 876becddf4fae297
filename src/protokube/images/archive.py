"""Validate an image archive by its own JSON, before anything is changed. Pure.

Supports the two formats that containerd reads: an OCI layout (`oci-layout`, `index.json`, `blobs/`), else the older
format of `docker save` (`manifest.json`). An archive with both is treated as an OCI layout. Missing or damaged content
and a wrong platform are problems; all problems of an archive are reported at once.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from protokube.images.contents import Contents, ImageProblem
from protokube.images.names import BadName, normalise

LAYOUT, INDEX, MANIFEST = "oci-layout", "index.json", "manifest.json"
CONTAINERD_NAME, REF_NAME = "io.containerd.image.name", "org.opencontainers.image.ref.name"
NAMELESS = "save it by its name, not by its id: `docker save NAME`, `podman save NAME`, `ctr images export FILE NAME`"
SHA256 = "blobs/sha256/"
DEEPEST = 4
"""Levels of nested indexes; no real image has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The names in an archive, and its problems."""

    names: Mapping[str, str]
    """By the full name that the kubelet requests: the name that containerd uses at import."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """One image: its names, as written in the archive, and its problems."""

    names: tuple[str, ...]
    problems: tuple[str, ...]


def judge(contents: Contents, machine: str) -> Verdict:
    """Validate an archive for an architecture as images name it: `amd64`."""
    names: dict[str, str] = {}
    problems: list[str] = []
    try:
        images = list(_layout(contents, machine) if LAYOUT in contents.members else _saved(contents, machine))
    except ImageProblem as why:
        return Verdict(names={}, problems=(str(why),))
    for image in images:
        problems += image.problems
        for name in image.names:
            try:
                names[normalise(name)] = _imported_as(name, contents)
            except BadName as why:
                problems.append(str(why))
    if not names and not problems:
        problems.append(f"its image has no name; {NAMELESS}")
    return Verdict(names=dict(sorted(names.items())), problems=tuple(dict.fromkeys(problems)))


def _imported_as(name: str, contents: Contents) -> str:
    """containerd normalises the names of `docker save`, and keeps those of an OCI layout."""
    return name if LAYOUT in contents.members else normalise(name)


def _saved(contents: Contents, machine: str) -> Iterator[Named]:
    if MANIFEST not in contents.members:
        raise ImageProblem(f"not an archive of images: there is neither {LAYOUT} nor {MANIFEST} in it")
    entries = _json(contents, MANIFEST)
    if not isinstance(entries, list) or not all(_is_saved(entry) for entry in entries):
        raise ImageProblem(f"{MANIFEST} is not what `docker save` writes")
    for entry in entries:
        yield Named(tuple(entry.get("RepoTags") or ()), tuple(_wrong_with_saved(contents, entry, machine)))


def _is_saved(entry: Any) -> bool:
    match entry:
        case {"Config": str(), "Layers": [*layers]}:
            tags = entry.get("RepoTags")
            return all(isinstance(each, str) for each in [*layers, *(tags or ())]) and isinstance(tags, list | None)
    return False


def _wrong_with_saved(contents: Contents, entry: Mapping[str, Any], machine: str) -> Iterator[str]:
    what = ", ".join(entry.get("RepoTags") or ()) or "an image without a name"
    layers = [_followed(contents, path) for path in entry["Layers"]]
    yield from (f"{what}: its layer {path} is not in the archive" for path in layers if path not in contents.members)
    try:
        config = _json(contents, entry["Config"])
    except ImageProblem as why:
        yield f"{what}: {why}"
        return
    yield from _wrong_platform(what, config, machine)
    match config:
        case {"rootfs": {"diff_ids": [*ids]}} if len(ids) == len(layers):
            for path, diff_id in zip(layers, ids, strict=True):
                member = contents.members.get(path)
                if member and not member.compressed and diff_id != f"sha256:{member.sha256}":
                    yield f"{what}: its layer {path} is damaged"


def _layout(contents: Contents, machine: str) -> Iterator[Named]:
    index = _json(contents, INDEX)
    match index:
        case {"manifests": [*entries]} if all(isinstance(entry, dict) for entry in entries):
            pass
        case _:
            raise ImageProblem(f"{INDEX} is not the index of an OCI layout")
    blobs = {path: member for path, member in contents.members.items() if path.startswith(SHA256)}
    damaged = [path for path, member in sorted(blobs.items()) if path != f"{SHA256}{member.sha256}"]
    yield Named((), tuple(f"{path} is damaged" for path in damaged))
    for entry in entries:
        notes = entry.get("annotations")
        notes = notes if isinstance(notes, dict) else {}
        name = str(notes.get(CONTAINERD_NAME) or _whole(str(notes.get(REF_NAME) or "")))
        what = name or "an image without a name"
        problems = tuple(_wrong_with_blob(contents, entry, what, machine, DEEPEST))
        yield Named((name,) if name else (), problems)


def _whole(reference: str) -> str:
    """The reference of a layout is a full name, or only a tag, which is not a name."""
    return reference if any(letter in reference for letter in "/:@") else ""


def _wrong_with_blob(
    contents: Contents, entry: Mapping[str, Any], what: str, machine: str, deeper: int
) -> Iterator[str]:
    """Problems of a manifest, or of the manifest for our architecture in a multi-architecture index."""
    try:
        tree = _blob(contents, entry)
        match tree:
            case {"manifests": [*inner]} if deeper and all(isinstance(each, dict) for each in inner):
                ours = [each for each in inner if _platform(each) == ("linux", machine) or "platform" not in each]
                if not ours:
                    others = sorted({"/".join(_platform(each)) for each in inner} - {"unknown/unknown"})
                    yield _elsewhere(what, ", ".join(others) or "no platform", machine)
                for each in ours[:1]:
                    yield from _wrong_with_blob(contents, each, what, machine, deeper - 1)
            case {"config": dict(config), "layers": [*layers]} if all(isinstance(each, dict) for each in layers):
                yield from _wrong_platform(what, _blob(contents, config), machine)
                for layer in layers:
                    if _path(layer) not in contents.members:
                        yield f"{what}: its layer {layer.get('digest')} is not in the archive"
            case _:
                yield f"{what}: {_path(entry)} is no manifest of an image"
    except ImageProblem as why:
        yield f"{what}: {why}"


def _platform(entry: Mapping[str, Any]) -> tuple[str, str]:
    match entry.get("platform"):
        case {"os": str(system), "architecture": str(machine)}:
            return system, machine
    return "unknown", "unknown"


def _wrong_platform(what: str, config: Any, machine: str) -> Iterator[str]:
    platform = _platform({"platform": config})
    if platform != ("linux", machine):
        yield _elsewhere(what, "/".join(platform), machine)


def _elsewhere(what: str, platforms: str, machine: str) -> str:
    return f"{what} is for {platforms}, and this machine is linux/{machine}"


def _path(entry: Mapping[str, Any]) -> str:
    return f"blobs/{str(entry.get('digest')).replace(':', '/', 1)}"


def _blob(contents: Contents, entry: Mapping[str, Any]) -> Any:
    return _json(contents, _path(entry))


def _json(contents: Contents, path: str) -> Any:
    member = contents.members.get(_followed(contents, path))
    if member is None:
        raise ImageProblem(f"{path} is not in the archive")
    try:
        return json.loads(member.data or b"")
    except (ValueError, RecursionError):
        raise ImageProblem(f"{path} is not JSON") from None


def _followed(contents: Contents, path: str) -> str:
    """Resolve a link: older `docker save` archives store a shared layer once, and link to it."""
    target = contents.links.get(path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
