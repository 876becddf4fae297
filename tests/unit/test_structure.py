"""Files and folders stay small enough for a reader, and imports lead in one direction."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import grimp

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "protokube"
LINES, MODULES = 300, 20


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
