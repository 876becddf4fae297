"""Builders for specs, filling in what a test does not care about, and short ways to what was found."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any, TypeVar

from protokube.errors import InvalidSpec, Problem
from protokube.spec.decode import Reading, Tree, decode
from protokube.spec.parse import Spec, parse
from protokube.spec.tree import Mapping, Node, read_documents

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
OURS = "protokube.io/v1alpha1"
THEIRS = "kops.k8s.io/v1alpha2"

N = TypeVar("N", bound=Node)


def a_document(body: str, *, kind: str = "Cluster", name: str = "dev.example.com", api: str = OURS) -> str:
    """One document; the first line of its spec is line 6, or line 1 is the text given for the spec."""
    spec = textwrap.indent(textwrap.dedent(body).strip("\n"), "  ")
    return f"apiVersion: {api}\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n{spec}\n"


def a_cluster(body: str = "", *, name: str = "dev.example.com") -> str:
    """A cluster of ours that is complete with `cloud` and `zones` on lines 6 and 7; `body` begins on line 8."""
    head = "cloud: aws\nzones: [us-east-1a, us-east-1b, us-east-1c]\n"
    return a_document(head + textwrap.dedent(body).strip("\n"), name=name)


def a_group(body: str, *, name: str = "nodes") -> str:
    return a_document(body, kind="InstanceGroup", name=name)


def a_kops_cluster(body: str = "", *, name: str = "web.example.com") -> str:
    """A cluster of the original; `body` begins on line 8."""
    head = "cloudProvider: aws\nsubnets: [{name: us-east-1a, zone: us-east-1a, type: Public}]\n"
    return a_document(head + textwrap.dedent(body).strip("\n"), name=name, api=THEIRS)


def a_kops_group(body: str, *, name: str = "nodes") -> str:
    return a_document(body, kind="InstanceGroup", name=name, api=THEIRS)


def read(*texts: str) -> Spec:
    """The documents of these texts as one file, `spec.yaml`."""
    return parse([("spec.yaml", "---\n".join(texts))])


def problems(*texts: str) -> tuple[Problem, ...]:
    """What is wrong with these documents."""
    try:
        read(*texts)
    except InvalidSpec as wrong:
        return wrong.problems
    return ()


def one_problem(*texts: str) -> Problem:
    """The one thing that is wrong with these documents."""
    (found,) = problems(*texts)
    return found


def tree(text: str) -> Mapping:
    """The one document in a text."""
    (document,) = read_documents(textwrap.dedent(text), "spec.yaml")
    return document


def at(node: Node, *keys: str | int, kind: type[N]) -> N:
    """The node behind these keys and indexes."""
    for key in keys:
        node = node.fields[str(key)] if isinstance(node, Mapping) else node.items[int(key)]  # type: ignore[union-attr]
    assert isinstance(node, kind)
    return node


def decoded(schema: type, text: str, *, theirs: bool = False) -> tuple[Tree, Reading]:
    """What a schema makes of a text, with everything noticed."""
    reading = Reading()
    return decode(schema, tree(text), "", "spec.yaml", reading, theirs=theirs), reading


def said_by(reading: Reading) -> list[str]:
    """The problems as `line path: message`, in the order of the file."""
    found = sorted(reading.problems, key=lambda each: each.order)
    return [f"{each.where.line if each.where else '-'} {each.path}: {each.message}" for each in found]


def under(value: Any, path: str) -> Any:
    """The value at a dotted path of plain values."""
    for name in filter(None, re.split(r"[.\[\]]", path)):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value
