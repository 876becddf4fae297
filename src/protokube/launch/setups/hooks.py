"""The user's hooks: systemd units, or containers that run as one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from protokube.images.names import BadName, normalise
from protokube.launch.setups.check import UNIT
from protokube.launch.setups.notes import Notes
from protokube.launch.setups.values import ContainerHook, HookSetup
from protokube.spec.decode import Tree

CONTAINER_FIELDS = ("image", "command", "environment")


def hooks(both: Sequence[tuple[str, Tree]], role: str, notes: Notes) -> tuple[HookSetup, ...]:
    """Those for a role, of the group first; the first of a name wins."""
    found: dict[str, HookSetup] = {}
    for at, holder in both:
        for index, hook in enumerate(holder.get("hooks") or ()):
            if not hook.get("roles") or role in hook["roles"]:
                here = f"{at}.hooks[{index}]".lstrip(".")
                each = _hook(hook, f"protokube-hook-{'group-' if at else ''}{index}", here, notes)
                found.setdefault(each.name, each)
    return tuple(found.values())


def _hook(hook: Tree, default: str, at: str, notes: Notes) -> HookSetup:
    name = str(hook.get("name") or default)
    name = name if UNIT.fullmatch(name) else f"{name}.service"
    if not UNIT.fullmatch(name):
        notes.problem(f"{at}.name", f"{name!r} is not the name of a unit", "letters, digits and -_.@:")
    text, container = str(hook.get("manifest") or ""), hook.get("execContainer")
    if hook.get("disabled"):
        return HookSetup(name=name, disabled=True)
    if text and container:
        notes.warn(f"{at}.execContainer", "ignored: the hook has a `manifest`", "keep one of the two")
    raw = bool(hook.get("useRawManifest"))
    if raw and (hook.get("requires") or hook.get("before")):
        message = "`requires` and `before` are ignored: the manifest is the whole unit"
        notes.warn(at, message, "write Requires= and Before= into the manifest")
    return HookSetup(
        name=name,
        service="" if raw else text,
        unit=text if raw else "",
        container=_container(container, f"{at}.execContainer", notes) if container and not text else None,
        requires=() if raw else tuple(hook.get("requires") or ()),
        before=() if raw else tuple(hook.get("before") or ()),
        enabled=hook.get("enabled") is not False,
    )


def _container(tree: Tree, at: str, notes: Notes) -> ContainerHook:
    notes.only(tree, CONTAINER_FIELDS, at)
    try:
        image = normalise(str(tree.get("image") or ""))
    except BadName as error:
        image = ""
        notes.problem(f"{at}.image", str(error))
    words = _words(tree.get("command") or [], f"{at}.command", notes)
    given: Any = tree.get("environment") or {}
    if not isinstance(given, dict):
        notes.problem(f"{at}.environment", "is not an object", "NAME: value")
        given = {}
    environment = {str(name): str(value) for name, value in given.items()}
    for name in environment:
        if not name.replace("_", "a").isalnum():
            notes.problem(f"{at}.environment.{name}", "is not the name of a variable")
    return ContainerHook(image=image, command=tuple(words), environment=environment)


def _words(command: Any, at: str, notes: Notes) -> list[str]:
    try:
        if isinstance(command, str):
            return shlex.split(command)
    except ValueError as error:
        notes.problem(at, f"cannot be split into words: {error}", "a list of words needs no quotes")
        return []
    if not isinstance(command, list):
        notes.problem(at, "is neither a text nor a list of words")
        return []
    return [str(each) for each in command]
