"""Builders for tests of the complete configuration: they fill in what a test does not care about."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from protokube import fast_yaml
from protokube.config.complete import Config, complete
from protokube.config.document import documents, write
from protokube.config.draft import Draft, Ledger, Origin
from protokube.errors import InvalidSpec, Problem, Where
from protokube.spec.decode import Tree
from protokube.spec.parse import API_VERSION, Spec, parse

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
TABLES = ROOT / "src" / "protokube" / "config" / "tables"
FILE = "spec.yaml"
ZONES = {
    "aws": ["us-east-1a", "us-east-1b", "us-east-1c"],
    "gce": ["us-central1-a", "us-central1-b", "us-central1-c"],
}

Group = tuple[str, Tree]


def a_group(name: str = "nodes", role: str = "Node", **spec: Any) -> Group:
    """An instance group."""
    return name, {"role": role, **spec}


class _Quoting(fast_yaml.dumper()):  # type: ignore[misc]  # a base that is chosen at run time
    """Text always in quotes, so that what a test means as text is read as text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
_Quoting.add_representer(float, lambda dumper, number: dumper.represent_scalar("tag:yaml.org,2002:float", repr(number)))
_Quoting.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+0-9.e]+$"), list("-+.0123456789"))


def spec_text(cluster: Tree, groups: Iterable[Group] = (), name: str = "dev.example.com") -> str:
    """The documents a user would write."""
    trees: list[Tree] = [{"apiVersion": API_VERSION, "kind": "Cluster", "metadata": {"name": name}, "spec": cluster}]
    for group, spec in groups:
        trees.append({"apiVersion": API_VERSION, "kind": "InstanceGroup", "metadata": {"name": group}, "spec": spec})
    return yaml.dump_all(trees, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=10_000)


def a_spec(*groups: Group, **cluster: Any) -> Spec:
    """A spec on AWS in three zones, unless it says otherwise; `name` names the cluster."""
    name, cloud = cluster.pop("name", "dev.example.com"), cluster.get("cloud", "aws")
    placed = {"zones": ZONES[cloud]} if cloud in ZONES else {}
    return parse([(FILE, spec_text({"cloud": cloud, **placed, **cluster}, groups, name))])


def completed(*groups: Group, **cluster: Any) -> Config:
    return complete(a_spec(*groups, **cluster))


def kops(cluster: Tree, *groups: Group, name: str = "old.example.com") -> Spec:
    """A document of the original."""
    text = spec_text({"cloudProvider": "aws", **cluster}, groups, name)
    return parse([(FILE, text.replace(API_VERSION, "kops.k8s.io/v1alpha2"))])


def problems(*groups: Group, **cluster: Any) -> dict[str, Problem]:
    """What is wrong with a spec, by path; there must be something."""
    try:
        completed(*groups, **cluster)
    except InvalidSpec as error:
        return {each.path: each for each in error.problems}
    raise AssertionError("the spec was accepted")


def the_problem(*groups: Group, **cluster: Any) -> Problem:
    """The one thing that is wrong with a spec."""
    found = list(problems(*groups, **cluster).values())
    assert len(found) == 1, [str(each) for each in found]
    return found[0]


def warnings(config: Config) -> dict[str, Problem]:
    return {each.path: each for each in config.warnings}


def written(config: Config, form: str = "yaml") -> str:
    out = io.StringIO()
    write(documents(config), form, out)
    return out.getvalue()


def read_back(text: str, file: str = "complete.yaml") -> Config:
    """A complete configuration, completed again."""
    return complete(parse([(file, text)]))


def taken_again(config: Config) -> Config:
    """A complete configuration, completed again without being written out in between."""
    spec = Spec(name=config.name, cluster=config.cluster, groups=config.groups, places={}, rendered=config.rendered)
    return complete(spec)


def flags(config: Config, component: str, group: str = "") -> Tree:
    """The flags a component is given; a kubelet's by its group."""
    return dict(config.rendered[group][component]["flags"])


def file_of(config: Config, component: str, group: str = "") -> Tree:
    """The one configuration file a component is given."""
    (content,) = config.rendered[group][component]["files"].values()
    return dict(content)


def kubelet_flags(config: Config, group: str = "nodes") -> Tree:
    return flags(config, "kubelet", group)


def kubelet_file(config: Config, group: str = "nodes") -> Tree:
    return file_of(config, "kubelet", group)


def etcd_file(config: Config, key: str = "main", member: str = "a") -> Tree:
    (content,) = config.rendered[""]["etcd"][key][member]["files"].values()
    return dict(content)


def origin(config: Config, path: str) -> Origin:
    """Where a value of the configuration came from."""
    found = config.ledger.origin(path)
    assert found is not None, path
    return found


def a_ledger(**places: int) -> Ledger:
    """A ledger of a spec whose fields stand on these lines."""
    return Ledger(places={path.replace("__", "."): Where(FILE, line) for path, line in places.items()})


def a_draft(tree: Tree | None = None, ledger: Ledger | None = None, path: str = "") -> Draft:
    return Draft({} if tree is None else tree, ledger or a_ledger(), path)


@cache
def table(name: str) -> dict[str, dict[str, Any]]:
    """Flags by component as the table file lists them, not through our own reader."""
    return dict(json.loads((TABLES / f"{name}.json").read_text("utf-8")))
