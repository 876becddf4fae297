"""What we import is what we declare: pyproject.toml, the locks and the imports of src agree."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "protokube"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LOCKS = ("runtime", "build", "dev")
MAY_NEED = {
    "http": ["store/http.py", "store/wire.py"],
    "s3": ["store/http.py", "store/wire.py", "store/s3.py", "store/s3_errors.py"],
    "gs": ["store/http.py", "store/wire.py", "store/gs.py", "store/gs_request.py"],
    "route53": ["providers/dns/route53_calls.py"],
}
"""By extra: the modules that nothing else needs, and so may import what it brings."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[^\w.-]", each)[0]) for each in requirements}


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    return {normal(name): version for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE)}


def imports(file: Path) -> Iterator[str]:
    """The top-level packages that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name.partition(".")[0] for alias in aliases)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]


@cache
def foreign() -> list[tuple[str, set[str]]]:
    """Each module of ours with the distributions it imports from."""
    owners, found = packages_distributions(), []
    for file in sorted(SOURCE.rglob("*.py")):
        packages = {each for each in imports(file) if each not in sys.stdlib_module_names and each != "protokube"}
        for package in sorted(packages):
            # several distributions share the namespace `google`; google-auth is the one that has google.auth
            needs = {normal(owner) for owner in owners.get(package, [f"nothing installed has {package}"])}
            found.append((str(file.relative_to(SOURCE)), {"google-auth"} if package == "google" else needs))
    return found


def test_everything_imported_is_declared() -> None:
    always = names(PROJECT["dependencies"])
    allowed = {place: {name for extra in MAY_NEED if place in MAY_NEED[extra] for name in names(EXTRAS[extra])}
               for place, _ in foreign()}  # fmt: skip
    assert [(place, sorted(needs)) for place, needs in foreign() if not needs & (always | allowed[place])] == []


def test_everything_declared_is_imported() -> None:
    used = {name for _, needs in foreign() for name in needs}
    declared = names(PROJECT["dependencies"] + [each for group in EXTRAS.values() for each in group])
    assert declared - used == set()


def test_extras_that_were_merged_into_the_rest_can_still_be_named() -> None:
    assert {"http", "s3", "gs", "route53", "agent", "dns"} <= EXTRAS.keys()
    assert not EXTRAS["agent"] + EXTRAS["dns"]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", text)
    assert all("--hash=sha256:" in each for each in re.split(r"\n(?=\S)", text))


def test_the_small_environment_has_all_that_is_declared_and_little_more() -> None:
    pinned = pins("runtime")
    assert names(PROJECT["dependencies"]) <= pinned.keys()
    assert len(pinned) + len(["protokube", "pip"]) <= 30


@pytest.mark.parametrize("lock", ["runtime", "dev"])
def test_the_page_about_installing_tells_how_many_packages_there_are(lock: str) -> None:
    page = " ".join((ROOT / "docs" / "install.md").read_text().split())
    assert f"{len(pins(lock))} packages of `requirements/{lock}.lock`" in page


@pytest.mark.parametrize("lock", ["runtime", "build"])
def test_tests_run_with_the_versions_that_users_get(lock: str) -> None:
    here = pins("dev")
    ours = pins(lock)
    assert {name: here.get(name) for name in ours} == ours
