"""The assets of a machine in its cache: looked at cheaply, and read from end to end before they are used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from protokube.errors import Refused
from protokube.nodeup.assets.fetch import Time, fetch, file_name
from protokube.nodeup.assets.records import Record, digest_of, read_record, stamp, write_record
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import Asset, Task

FOLDER = "assets"


def with_assets(machine: Machine, tasks: Iterable[Task]) -> Machine:
    """The machine, knowing the assets among its tasks by their names."""
    found: dict[str, Asset] = {}
    for each in tasks:
        if isinstance(each, Asset):
            if each.name in found and found[each.name].sha256 != each.sha256:
                raise Refused(f"two assets are named {each.name}", saw=f"{found[each.name].sha256}, {each.sha256}")
            found[each.name] = each
    return replace(machine, assets=found)


def named(machine: Machine, name: str) -> Asset:
    """The asset that another task names."""
    if name not in machine.assets:
        raise Refused(f"no task brings the asset {name}", want=", ".join(machine.assets) or "any asset")
    return machine.assets[name]


def place(machine: Machine, asset: Asset) -> str:
    """Where it is in the cache, as a path of the machine."""
    return f"{machine.cache}/{FOLDER}/{file_name(asset)}"


def what_is_cached(machine: Machine, asset: Asset) -> str:
    """The digest of the file in its place in the cache; empty if there is none."""
    where = place(machine, asset)
    record = read_record(machine, asset.key)
    return digest_of(machine.path(where), record.files.get(where) if record else None)


def obtain(machine: Machine, asset: Asset, say: Say, clock: Time | None = None) -> Path:
    """Have the asset in the cache, read from end to end just now; a damaged file there is fetched again."""
    where = place(machine, asset)
    target = machine.path(where)
    if target.exists() and digest_of(target, None) != asset.sha256:
        say(f"{asset.name}: its file in the cache is damaged, it is fetched again")
    path = fetch(asset, target.parent, say, clock)
    fits = {where: stamp(path, asset.sha256)}
    write_record(machine, Record(key=asset.key, source=asset.sha256, files=fits, notes={}))
    return path
