"""The documentation site: the list of versions that the selector shows."""

from __future__ import annotations

from pathlib import Path

import site_build


def test_versions_are_listed_with_the_built_one_first_and_the_others_newest_first(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.2.1", "0.3.0"):
        (tmp_path / name).mkdir()
    (tmp_path / "index.html").touch()

    listed = site_build.list_versions(tmp_path, "0.3.0")

    assert [each["version"] for each in listed] == ["0.3.0", "0.10.0", "0.9.0", "0.2.1"]


def test_the_version_of_the_site_is_that_of_the_package() -> None:
    from protokube import __version__

    assert site_build.version() == __version__
