"""Build the documentation site from the pages that lie in the repository: dist/site/VERSION, and a list of versions.

The pages are staged as they lie in the repository, so that a link that works there works on the site. A link to a page,
a file or a heading that does not exist ends the build.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGED = ROOT / "build" / "site-pages"
SITE = ROOT / "dist" / "site"
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "docs", "examples", "deploy")
VERSION = re.compile(r'^__version__ = "(.+)"', re.MULTILINE)


def version() -> str:
    found = VERSION.search((ROOT / "src/protokube/__init__.py").read_text())
    assert found, "src/protokube/__init__.py names no version"
    return found[1]


def stage() -> None:
    shutil.rmtree(STAGED, ignore_errors=True)
    STAGED.mkdir(parents=True)
    for name in PAGES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, STAGED / name)
        else:
            shutil.copy2(source, STAGED / name)


def list_versions(site: Path, newest: str) -> list[dict[str, object]]:
    """In the form that the theme's selector reads; the newest first."""
    others = sorted((each.name for each in site.iterdir() if each.is_dir() and each.name != newest), key=_order)
    return [{"version": name, "title": name, "aliases": []} for name in [newest, *reversed(others)]]


def _order(name: str) -> list[tuple[bool, int, str]]:
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"[.\-+]", name)]


def main() -> int:
    stage()
    number = version()
    # not with --quiet: warnings that are not logged are not counted, and --strict passes
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(SITE / number)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, check=False, stderr=subprocess.PIPE, text=True)
    if built.returncode:
        print(built.stderr, end="", file=sys.stderr)
        return built.returncode
    (SITE / "versions.json").write_text(json.dumps(list_versions(SITE, number), indent=2) + "\n")
    target = f"{number}/index.html"
    (SITE / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>protokube</title><meta http-equiv="refresh" content="0; '
        f'url={target}"><a href="{target}">protokube {number}</a>\n'
    )
    pages = sum(1 for _ in (SITE / number).rglob("*.html"))
    print(f"{SITE / number}: {pages} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
