"""Each flag that names a path is declared as one that is read, written, or neither."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest

from protokube.config.flags import COMPONENTS, KUBERNETES_TABLES
from protokube.manifests.path_flags import NO_PATHS, READ, WRITTEN

PODS = sorted(name for name in COMPONENTS.values() if name != "kubelet")
"""The kubelet runs in no pod."""
LOOKS = re.compile(r"(file|config|certificate|authority|key|dir|path|paths|to|nfs|filepath-.*)$")
TEXTS = ("string", "stringArray", "strings", "namedCertKey")


def flags(table: str, component: str) -> dict[str, dict[str, str]]:
    text = resources.files("protokube.config").joinpath("tables", f"{table}.json").read_text("utf-8")
    return dict(json.loads(text)[component])


@pytest.mark.parametrize("component", PODS)
@pytest.mark.parametrize("table", KUBERNETES_TABLES)
def test_a_flag_that_looks_like_a_path_is_declared(table: str, component: str) -> None:
    looks = {name for name, flag in flags(table, component).items() if LOOKS.search(name) and flag["type"] in TEXTS}

    assert looks - READ - WRITTEN - NO_PATHS == set()


def test_what_is_declared_is_a_flag_of_some_version() -> None:
    known = {name for table in KUBERNETES_TABLES for component in PODS for name in flags(table, component)}

    assert (READ | WRITTEN | NO_PATHS) - known == {"key-file"}


def test_no_flag_is_declared_twice() -> None:
    assert not READ & WRITTEN
    assert not (READ | WRITTEN) & NO_PATHS
