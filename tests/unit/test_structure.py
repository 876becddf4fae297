"""Files and folders stay small enough for a reader, and imports lead in one direction."""

from __future__ import annotations

import ast
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
"""

    assert sorted(tree_reads(source)) == [3, 6, 11, 11]


def tree_reads(source: str) -> Iterator[int]:
    """The lines in which a tree of a configuration is taken: of a parameter of that type, of what a function that
    completes a spec returns, or of an attribute `config`."""
    nodes = list(ast.walk(ast.parse(source)))
    known = {"config"}
    for node in nodes:
        if isinstance(node, ast.arg) and node.annotation is not None:
            words = ast.unparse(node.annotation).strip("'").split(" | ")
            known |= {node.arg} if CONFIG in words else set()
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            known |= {ast.unparse(each) for each in node.targets} if called.startswith("complete") else set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in TREES:
            yield from [node.lineno] if ast.unparse(node.value).rpartition(".")[2] in known else []


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
