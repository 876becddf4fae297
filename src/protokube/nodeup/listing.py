"""A list of tasks as text: what will be true of a machine, for people and for comparison. Secrets are not shown.

One task after the other in their order: its key, its fields that are not at their defaults, and the lines of its
content after a bar.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from protokube.nodeup.changes import HIDDEN
from protokube.nodeup.values import Asset, File, Module, Packages, Sysctl, Task, Unit

LINE_BY_LINE = ("content", "drop_ins", "secret", "after")


def listing(tasks: Iterable[Task], *, brief: Collection[str] = ()) -> str:
    """`brief`: keys of tasks whose content is not shown."""
    return "\n".join("".join(f"{line}\n" for line in _task(each, each.key in brief)) for each in tasks)


def _task(task: Task, brief: bool) -> Iterator[str]:
    yield task.key
    about = _about(task)
    for field in fields(task):
        value = getattr(task, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name not in (*LINE_BY_LINE, about) and value != default:
            yield from _field(field.name, value)
    if isinstance(task, Unit):
        yield f"  enabled: {_state(task.enabled)}, running: {_state(task.running)}"
    for key in task.after:
        yield f"  after: {key}"
    if isinstance(task, File):
        yield from _content("", HIDDEN if task.secret else _text(task.content), brief)
    if isinstance(task, Unit):
        yield from _content("", task.content or "", brief)
        for name, text in sorted(task.drop_ins.items()):
            yield from _content(f"  {task.name}.d/{name}", text, brief)


def _about(task: Task) -> str:
    """The field that its key shows already."""
    match task:
        case Packages():
            return "purpose" if task.purpose else "names"
        case Sysctl() | Module():
            return "file"
        case Asset() | Unit():
            return "name"
        case _:
            return "path" if hasattr(task, "path") else "name"


def _field(name: str, value: Any) -> Iterator[str]:
    if name in ("enabled", "running"):
        return
    if name == "mode":
        yield f"  mode: {value:04o}"
    elif isinstance(value, Mapping):
        yield from (f"  {each} = {found}" for each, found in sorted(value.items()))
    elif isinstance(value, tuple):
        yield f"  {name}: {' '.join(map(_word, value)) or 'none'}"
    else:
        yield f"  {name}: {value}"


def _word(value: Any) -> str:
    text = str(value)
    return repr(text) if not text or any(each in text for each in " \n\t'\"") else text


def _state(value: bool | None) -> str:
    return "left as it is" if value is None else ("yes" if value else "no")


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"({len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()})"


def _content(title: str, text: str, brief: bool) -> Iterator[str]:
    if title:
        yield title
    if brief:
        text = "(not shown here)"
    yield from (f"  | {line}".rstrip() for line in text.splitlines())
