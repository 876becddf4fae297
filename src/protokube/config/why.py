"""Explain the value at a path in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from protokube.config.complete import Config
from protokube.config.flags import COMPONENTS, flag_table
from protokube.errors import NotFound
from protokube.nearest import near
from protokube.spec import version as versions
from protokube.spec.decode import Tree
from protokube.spec.parse import GROUPS


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value under a path; lists and empty mappings are values."""
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from leaves(f"{path}.{name}" if path else name, child)
    else:
        yield path, value


def fields(config: Config) -> dict[str, Any]:
    """The values of the cluster and its groups by path, without the flags and files that are rendered from them."""
    found = {"metadata.name": config.name, **dict(leaves("", config.cluster))}
    for name, tree in config.groups.items():
        found.update(leaves(f"{GROUPS}.{name}", tree))
    return found


def flatten(config: Config) -> dict[str, Any]:
    """The whole configuration by path, flags and files included."""
    found = fields(config)
    for key, components in config.rendered.items():
        prefix = f"{GROUPS}.{key}." if key else ""
        for component, form in components.items():
            found.update(_form(prefix + component, form))
    return found


def _form(path: str, form: Tree) -> Iterator[tuple[str, Any]]:
    if "flags" not in form and "files" not in form:
        for name, inner in form.items():
            yield from _form(f"{path}.{name}", inner)
        return
    for name, value in (form.get("flags") or {}).items():
        yield f"{path}.flags.{name}", value
    for content in (form.get("files") or {}).values():
        for at, value in leaves("", content):
            if at not in ("", "apiVersion", "kind"):
                yield f"{path}.file.{at}", value


def why(config: Config, path: str) -> list[str]:
    """One sentence for the value at this path, or one for each value under it."""
    path = path.removeprefix("spec.").removeprefix(".").replace(".flags.--", ".flags.")
    values = flatten(config)
    if path in values:
        return [sentence(config, values, path)]
    under = [each for each in values if each.startswith((f"{path}.", f"{path}["))]
    if under:
        return [sentence(config, values, each) for each in under]
    index = path.rpartition("[")
    if index[0] in values and isinstance(values[index[0]], list):
        return [sentence(config, values, index[0])]
    if builtin := _component_default(config, path):
        return [builtin]
    hint = near(path, values) or near(path.rpartition(".")[2], {each.rpartition(".")[2] for each in values})
    raise NotFound(f"the complete configuration has no value {path}", hint=hint)


def sentence(config: Config, values: dict[str, Any], path: str) -> str:
    return f"{path} is {shown(values[path])}: {reason(config, values, path)}."


def reason(config: Config, values: dict[str, Any], path: str, steps: int = 3) -> str:
    """Default, derived, or set by the user; the sources of derived values are explained too, up to `steps` deep."""
    origin = config.ledger.origin(path)
    if origin is None:
        return "it follows from the rest"
    if origin.where:
        return f"you set it at {origin.where}"
    if not origin.of:
        return f"default, {origin.because}"
    if steps <= 1:
        return origin.because or f"as {origin.of[0]}"
    sources = []
    for source in origin.of:
        inner = reason(config, values, source, steps - 1)
        text = f"{source} {shown(values[source])}" if source in values else source
        sources.append(f"{text} ({inner})")
    because = f"{origin.because}; " if origin.because else ""
    return f"{because}derived from {' and '.join(sources)}"


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, list) and all(isinstance(each, str | int) for each in value):
        return f"[{', '.join(str(each) for each in value)}]"
    return str(value)


def brief(value: Any, most: int = 60) -> str:
    """The value in one line of at most so many characters, control characters escaped."""
    first, *rest = shown(value).removesuffix("\n").split("\n")
    first, end = printable(first), f" ... ({len(rest) + 1} lines)" if rest else ""
    if len(first) + len(end) > most:
        end = end or " ..."
        first = first[: max(most - len(end), 1)].rstrip()
    return first + end


def printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _component_default(config: Config, path: str) -> str | None:
    """A flag that is not set: the component's own default, from the flag table."""
    parts = path.split(".")
    if len(parts) < 3 or parts[-2] != "flags" or parts[-3] not in COMPONENTS:
        return None
    version = versions.parse(config.cluster["kubernetesVersion"]) or versions.DEFAULT
    component, flag = COMPONENTS[parts[-3]], parts[-1].removeprefix("--")
    table = flag_table(component, version.series)
    if not table.lists(flag):
        return None
    default = table.default(flag)
    text = "has no value" if default in (None, "") else f"is {shown(default)}"
    return f"{path} {text}: nothing sets it, so the default of {component} {version.short} applies."
