"""Files and folders stay small enough for a reader, and imports lead in one direction."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grimp

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "protokube"
LINES, MODULES = 300, 20
CONFIG, TREES = "Config", {"cluster", "groups", "rendered"}
"""The complete configuration, and its attributes that are trees of names and values without types."""


def test_no_source_file_is_longer_than_a_reader_follows() -> None:
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")}

    assert len(lengths) > 400
    assert {name: length for name, length in lengths.items() if length > LINES} == {}


def test_no_folder_holds_more_modules_than_one_looks_over() -> None:
    files = [file for file in SOURCE.rglob("*.py") if file.name != "__init__.py"]
    counts = Counter(str(file.parent.relative_to(SOURCE)) for file in files)

    assert {folder: count for folder, count in counts.items() if count > MODULES} == {}


def test_every_package_says_what_it_is_for() -> None:
    silent = [str(file.parent.relative_to(SOURCE)) for file in SOURCE.rglob("__init__.py")
              if not file.read_text().lstrip().startswith('"""')]  # fmt: skip

    assert silent == []


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("protokube", cache_dir=None)

    assert len(graph.modules) > 400
    assert [" -> ".join(cycle) for cycle in import_cycles(graph)] == []


def test_only_config_and_launch_read_the_tree_of_a_configuration() -> None:
    """Everybody else gets typed values from `launch`."""
    files = [file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] not in ("config", "launch")]
    found = {str(file.relative_to(SOURCE)): sorted(tree_reads(file.read_text())) for file in files}

    assert len(files) > 400
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_read_of_the_tree_is_found_however_the_configuration_is_called() -> None:
    source = """
def image(config: Config) -> str:
    return config.cluster["image"]

def zone(given: "Config | None", spec: Spec) -> str:
    tree = given.cluster
    return tree["dnsZone"] + spec.cluster["zone"] + given.name

def role(former: Former) -> str:
    now = complete_here(spec)
    return former.config.groups["a"], now.rendered[""]

def size(spec: Spec) -> int:
    return complete_here(spec).cluster["size"]

class Former:
    before: Config | None = None

    def zone(self) -> str:
        return self.before.cluster["zone"]

def zones(given: list[Config], named: dict[str, Config]) -> list[str]:
    first, (other, rest) = given[0], (complete(spec), spec)
    for each in given:
        each.groups["a"]
    for name, value in named.items():
        value.groups[name]
    return [one.cluster for one in given if first.cluster == other.cluster and rest.cluster]
"""

    assert sorted(tree_reads(source)) == [3, 6, 11, 11, 14, 20, 25, 27, 28, 28, 28]


def tree_reads(source: str) -> Iterator[int]:
    """The lines in which a tree of a configuration is taken: of a parameter or field of that type, of an item of a
    collection of them, of what a function that completes a spec returns, or of an attribute `config`."""
    nodes = list(ast.walk(ast.parse(source)))
    known, many = {"config"}, set[str]()
    for node in nodes:
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            name = node.arg if isinstance(node, ast.arg) else _last(node.target)
            whole = re.sub(r"[\"' ]", "", ast.unparse(node.annotation))
            known |= {name} if CONFIG in whole.split("|") else set()
            many |= {name} if re.search(rf"\[(.*\W)?{CONFIG}\W", whole) else set()

    def is_config(value: ast.expr) -> bool:
        if isinstance(value, ast.Call):
            return _last(value.func).startswith("complete")
        if isinstance(value, ast.Subscript):
            return _last(value.value) in many
        return _last(value) in known

    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                known |= {_last(name) for name, value in _pairs(target, node.value) if is_config(value)}
        if isinstance(node, ast.For | ast.comprehension) and _collection(node.iter) in many:
            known |= {_last(name) for name, _ in _pairs(node.target, node.iter)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in TREES:
            yield from [node.lineno] if is_config(node.value) else []


def _last(value: ast.expr) -> str:
    return ast.unparse(value).rpartition(".")[2]


def _collection(value: ast.expr) -> str:
    """The name of what is iterated over: also by `items`, `values`, `sorted` and the like."""
    while isinstance(value, ast.Call):
        inner = value.func.value if isinstance(value.func, ast.Attribute) else (value.args or [value.func])[0]
        value = inner
    return _last(value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Names that are assigned, each with its value; with the whole value where that cannot be taken apart."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    apart = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
    for number, each in enumerate(target.elts):
        yield from _pairs(each, value.elts[number] if apart else value)  # type: ignore[attr-defined]


def test_modules_that_import_each_other_are_shown_as_one_short_cycle() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in ("ab", "bc", "cd", "db", "ca", "xy", "yx", "ax"):
        graph.add_import(importer=importer, imported=imported)

    assert import_cycles(graph) == [("a", "b", "c", "a"), ("x", "y", "x")]


def import_cycles(graph: grimp.ImportGraph) -> list[tuple[str, ...]]:
    """One cycle for each strongly connected component: the shortest one through its first module."""
    imported = {module: graph.find_upstream_modules(module) for module in graph.modules}
    components = {frozenset({module, *(each for each in imported[module] if module in imported[each])})
                  for module in graph.modules}  # fmt: skip
    return sorted(_shortest_cycle(graph, component) for component in components if len(component) > 1)


def _shortest_cycle(graph: grimp.ImportGraph, component: frozenset[str]) -> tuple[str, ...]:
    begin = min(component)
    nexts = sorted(graph.find_modules_directly_imported_by(begin) & component)
    chains = [graph.find_shortest_chain(importer=each, imported=begin) or () for each in nexts]
    return (begin, *min(chains, key=len))
