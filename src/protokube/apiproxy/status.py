"""Status of the proxy: the state as data, and each change as a log line. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protokube.apiproxy.backends import Backend, Backends, Health

Tree = dict[str, Any]


def snapshot(state: Backends, *, name: str, unresolved: str = "") -> Tree:
    """The state without times and counters, so that it differs only after a change."""
    return {
        "name": name,
        "current": state.current,
        "unresolved": unresolved,
        "backends": [_backend(state.known[address]) for address in sorted(state.known)],
    }


def addresses_in(tree: object) -> list[str]:
    """The addresses in a saved snapshot, for a start while DNS is down; [] if it is not a snapshot."""
    backends = tree.get("backends") if isinstance(tree, dict) else None
    found = [each.get("address") for each in backends if isinstance(each, dict)] if isinstance(backends, list) else []
    return [each for each in found if isinstance(each, str) and each]


def sentences(before: Tree, after: Tree) -> Iterator[str]:
    """What changed, as log lines."""
    old = {each["address"]: each for each in before.get("backends", [])}
    new = {each["address"]: each for each in after["backends"]}
    for address in sorted(old.keys() | new.keys()):
        yield from _change(address, old.get(address), new.get(address))
    if after["current"] != before.get("current", "") and after["current"]:
        yield f"connections go to {after['current']}"
    if after["unresolved"] != before.get("unresolved", ""):
        why = after["unresolved"]
        yield f"{after['name']} cannot be resolved, known addresses stay: {why}" if why else "names resolve again"


def _change(address: str, old: Tree | None, new: Tree | None) -> Iterator[str]:
    if new is None:
        yield f"{address} is removed: the name no longer resolves to it, and its last connection ended"
        return
    if old is None or old["health"] != new["health"]:
        yield f"{address} is {new['health']}{': ' if new['why'] else ''}{new['why']}"
    if old is not None and old["listed"] != new["listed"]:
        yield f"{address} {'is in DNS again' if new['listed'] else 'is no longer in DNS; it gets no new connections'}"


def _backend(backend: Backend) -> Tree:
    why = backend.why if backend.health in (Health.DOUBTFUL, Health.BAD) else ""
    return {"address": backend.address, "health": backend.health.value, "listed": backend.listed, "why": why}
