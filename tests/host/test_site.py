"""The documentation site, built as `make docs` builds it: every page, and no link that leads nowhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import site_build

from host.emptymachine import REPOSITORY

ENVIRONMENT = Path("build/docs-env")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The pages of this checkout, to be changed, with the environment that builds its site."""
    made = subprocess.run([REPOSITORY / "scripts" / "site", "--environment"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    for name in (*site_build.PAGES, "mkdocs.yml", "scripts/site_build.py", "src/protokube/__init__.py"):
        source, target = REPOSITORY / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    return tmp_path


def build(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [REPOSITORY / ENVIRONMENT / "bin" / "python", checkout / "scripts" / "site_build.py"]
    return subprocess.run(command, capture_output=True, text=True)


def test_every_page_of_the_repository_is_built(checkout: Path) -> None:
    built = build(checkout)

    assert built.returncode == 0, built.stderr
    pages = checkout / "dist" / "site" / site_build.version()
    sources = [*(checkout / "docs").rglob("*.md"), checkout / "README.md"]
    missing = [each for each in sources if not (pages / each.relative_to(checkout)).with_suffix(".html").exists()]
    assert [each for each in missing if each.name != "README.md"] == []
    assert (pages / "index.html").exists()


@pytest.mark.parametrize("link", ["[gone](nowhere.md)", "![gone](nowhere.svg)", "[gone](faq.md#no-such-heading)"])
def test_a_link_that_leads_nowhere_ends_the_build_and_is_named(checkout: Path, link: str) -> None:
    with (checkout / "docs" / "limits.md").open("a") as page:
        page.write(f"\n{link}\n")

    built = build(checkout)

    assert built.returncode != 0
    assert "docs/limits.md" in built.stderr
    assert not (checkout / "dist" / "site" / "versions.json").exists(), "half a site is listed"
