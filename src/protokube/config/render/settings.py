"""Render settings for one version of one component: as entries of its configuration file if it has one, else as flags.

Never a flag that the version does not list, never a deprecated flag where the file has an entry. A setting that the
version does not support is a problem, never dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, is_dataclass
from typing import Any

from protokube.config.draft import Draft, Origin
from protokube.config.flags import FlagTable
from protokube.config.render.forms import FORMS, flag_value, number
from protokube.nearest import near
from protokube.spec.decode import Tree
from protokube.spec.fields import Declared, declared, quantity
from protokube.spec.version import Version, parse


@dataclass(slots=True)
class Form:
    """The flags of one component, and the entries of its configuration file."""

    flags: Tree = field(default_factory=dict)
    file: Tree = field(default_factory=dict)


def settings(schema: type, draft: Draft) -> Iterator[tuple[Declared, Draft, str]]:
    """Every setting of a component that has a value, with the mapping that contains it."""
    for name, rule in declared(schema).items():
        if not draft.has(name):
            continue
        if is_dataclass(rule.type):
            yield from settings(rule.type, draft.under(name))  # type: ignore[arg-type]  # a schema class
        elif rule.flag or rule.file:
            yield rule, draft, name


def render(schema: type, draft: Draft, table: FlagTable, version: Version, *, has_file: bool) -> Form:
    """The flags and file entries of one component; records the origin of each under the component's path."""
    form, at = Form(), draft.path
    for rule, holder, name in settings(schema, draft):
        value = holder.get(name)
        if has_file and in_file(rule, version):
            put(form.file, rule.file, FORMS[rule.form](value) if rule.form else value)
            draft.ledger.origins[f"{at}.file.{rule.file}"] = Origin("written to its file", (holder.at(name),))
        elif usable(rule, holder, name, table):
            plain = number(value) if rule.check is quantity else value  # flags take no units
            form.flags[rule.flag] = flag_value(plain, rule.repeat)
            draft.ledger.origins[f"{at}.flags.{rule.flag}"] = Origin("passed as a flag", (holder.at(name),))
    for flag, value in extra_flags(schema, draft, table, version, has_file):
        form.flags[flag] = value
        draft.ledger.origins[f"{at}.flags.{flag}"] = Origin("passed as a flag", (draft.at(f"extraFlags.{flag}"),))
    form.flags = dict(sorted(form.flags.items()))
    return form


def in_file(rule: Declared, version: Version) -> bool:
    """Whether the component's file has this entry at this version."""
    if not rule.file:
        return False
    since, until = parse(rule.since), parse(rule.until)
    return (since is None or version.series >= since) and (until is None or version.series < until)


def usable(rule: Declared, holder: Draft, name: str, table: FlagTable) -> bool:
    """Whether this version has the setting as a flag; if not, record a problem."""
    path, what = holder.ledger.source(holder.at(name)), f"{table.component} {table.version}"
    if known_to_be_needed(rule, table):
        return True
    if rule.flag and table.lists(rule.flag):
        if table.deprecated(rule.flag):
            holder.ledger.warn(path, f"{what} has only the flag --{rule.flag} for it, which is deprecated")
        return True
    hint = f"its configuration file has it since {rule.since}" if rule.since else "remove it from the spec"
    listed = f", though {table.perhaps[rule.flag]} has" if rule.flag in table.perhaps else ""
    missing = f"no --{rule.flag}" if rule.flag else f"no {rule.file} in its configuration file"
    holder.ledger.unfit(path, f"{what} has {missing}{listed}", hint)
    return False


NEEDED: dict[tuple[str, str], tuple[Version, Version]] = {
    ("kubelet", "container-runtime"): (Version(1, 20), Version(1, 24)),
    ("kubelet", "network-plugin"): (Version(1, 20), Version(1, 24)),
    ("kubelet", "cloud-provider"): (Version(1, 20), Version(1, 24)),
    ("kubelet", "container-runtime-endpoint"): (Version(1, 20), Version(1, 27)),
    ("kubelet", "register-with-taints"): (Version(1, 20), Version(1, 23)),
    ("kubelet", "register-node"): (Version(1, 20), Version(1, 23)),
}
"""Required flags of versions between two tables, from the release notes: first version, and version that dropped it."""


def known_to_be_needed(rule: Declared, table: FlagTable) -> bool:
    bounds = NEEDED.get((table.component, rule.flag))
    version = parse(table.version)
    return bounds is not None and version is not None and version < bounds[1]


def extra_flags(
    schema: type, draft: Draft, table: FlagTable, version: Version, has_file: bool
) -> Iterator[tuple[str, Any]]:
    """The user's own flags: each must exist in this version, and there must be no field for it."""
    if not draft.get("extraFlags"):  # the usual case, for each of possibly thousands of groups
        return
    source = draft.ledger.source(draft.at("extraFlags"))
    fields = {rule.flag: path for path, rule in _flag_fields(schema, source.removesuffix(".extraFlags"))}
    files = {rule.flag for _, rule in _flag_fields(schema, "") if has_file and in_file(rule, version)}
    for name, value in draft.get("extraFlags").items():
        flag = name.removeprefix("--")
        path, what = f"{source}.{name}", f"{table.component} {table.version}"
        if flag in fields:
            into = "its configuration file" if flag in files else "this flag"
            draft.ledger.problem(path, f"there is a field for it, which sets {into}", f"set {fields[flag]}")
        elif flag in table.perhaps:
            message = f"{what} has no flag table; {table.perhaps[flag]} lists --{flag}, its other neighbour does not"
            draft.ledger.warn(path, message, "check `--help` of your version")
            yield flag, flag_value(value, repeat=True)
        elif not table.lists(flag):
            draft.ledger.unfit(path, f"{what} has no flag --{flag}", near(flag, [*table.sure, *table.perhaps]))
        else:
            if table.deprecated(flag):
                draft.ledger.warn(path, f"--{flag} is deprecated in {what}")
            yield flag, flag_value(value, repeat=True)


def _flag_fields(schema: type, path: str) -> Iterator[tuple[str, Declared]]:
    for name, rule in declared(schema).items():
        here = f"{path}.{name}" if path else name
        if is_dataclass(rule.type):
            yield from _flag_fields(rule.type, here)  # type: ignore[arg-type]  # a schema class
        elif rule.flag:
            yield here, rule


def put(tree: Tree, path: str, value: Any) -> None:
    """Set a value at a dotted path, creating intermediate mappings."""
    *parents, last = path.split(".")
    for name in parents:
        tree = tree.setdefault(name, {})
    tree[last] = value
