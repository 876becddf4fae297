"""What the proxy tells: the state as data, and each change as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protokube.apiproxy.backends import Backend, Backends, Health

Tree = dict[str, Any]


def snapshot(state: Backends, *, name: str, unresolved: str = "") -> Tree:
    """Without times and counts, so that it differs only when something happened."""
    return {
        "name": name,
        "current": state.current,
        "unresolved": unresolved,
        "backends": [_backend(state.known[address]) for address in sorted(state.known)],
    }


def addresses_in(tree: object) -> list[str]:
    """The addresses of an earlier life, so that a start while no name resolves is no outage; [] if it is no such."""
    backends = tree.get("backends") if isinstance(tree, dict) else None
    told = [each.get("address") for each in backends if isinstance(each, dict)] if isinstance(backends, list) else []
    return [each for each in told if isinstance(each, str) and each]


def sentences(before: Tree, after: Tree) -> Iterator[str]:
    """What changed, for a log."""
    old = {each["address"]: each for each in before.get("backends", [])}
    new = {each["address"]: each for each in after["backends"]}
    for address in sorted(old.keys() | new.keys()):
        yield from _change(address, old.get(address), new.get(address))
    if after["current"] != before.get("current", "") and after["current"]:
        yield f"connections go to {after['current']}"
    if after["unresolved"] != before.get("unresolved", ""):
        why = after["unresolved"]
        yield f"{after['name']} cannot be resolved, and what is known stays: {why}" if why else "names resolve again"


def _change(address: str, old: Tree | None, new: Tree | None) -> Iterator[str]:
    if new is None:
        yield f"{address} is forgotten: the name left it, and so did the last connection"
        return
    if old is None or old["health"] != new["health"]:
        yield f"{address} is {new['health']}{': ' if new['why'] else ''}{new['why']}"
    if old is not None and old["listed"] != new["listed"]:
        yield f"{address} {'is named again' if new['listed'] else 'is named no longer; nothing new goes there'}"


def _backend(backend: Backend) -> Tree:
    why = backend.why if backend.health in (Health.DOUBTFUL, Health.BAD) else ""
    return {"address": backend.address, "health": backend.health.value, "listed": backend.listed, "why": why}
