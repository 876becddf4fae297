"""Describe a build from published Go modules: a wrapper module that requires them, and the checksums it may use. Pure.

`go install MODULE@VERSION` refuses a module with `replace` directives, and Kubernetes replaces its staging modules by
folders that are in no module zip. So we generate a wrapper module that requires Kubernetes and replaces each staging
module by the version published with the same release. The list of staging modules, and the settings that only count in
a main module, are read from the release's own go.mod.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WRAPPER = "protokube.invalid/build"
UNPUBLISHED = "v0.0.0"
NOT_SERVED = re.compile(r"(\S+@v\S+): reading \S+: ((?:403|404|410) [A-Z][A-Za-z ]*)")
GO_VERSION = re.compile(r"(?:go)?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoMod:
    """The directives in the go.mod of a release that only count in a main module."""

    go: str
    """The minimum Go version, `1.26.0`."""
    debug: Mapping[str, str]
    replaced: Mapping[str, tuple[str, str]]
    """By replaced module: the module and version that replace it."""
    staged: Sequence[str]
    """Staging modules: replaced by folders of the release itself."""


def read_go_mod(document: Mapping[str, Any]) -> GoMod:
    """Read the output of `go mod edit -json`."""
    replaced: dict[str, tuple[str, str]] = {}
    staged = {each["Path"] for each in document.get("Require") or () if each.get("Version") == UNPUBLISHED}
    for each in document.get("Replace") or ():
        new = each["New"]
        if "Version" in new:
            replaced[each["Old"]["Path"]] = (new["Path"], new["Version"])
        else:
            staged.add(each["Old"]["Path"])
    return GoMod(
        go=str(document.get("Go", "1.16")),
        debug={each["Key"]: each["Value"] for each in document.get("GoDebug") or document.get("Godebug") or ()},
        replaced=replaced,
        staged=sorted(staged),
    )


def wrapper(modules: Iterable[str], version: str, mod: GoMod, staging: str = "") -> str:
    """The go.mod of the wrapper module.

    `staging`: the published version of the staging modules, where the release's go.mod does not have it.
    """
    replaced = {**({old: (old, staging) for old in mod.staged} if staging else {}), **mod.replaced}
    lines = [
        f"module {WRAPPER}",
        f"go {mod.go}",
        *(f"godebug {key}={value}" for key, value in sorted(mod.debug.items())),
        *(f"require {module} v{version}" for module in modules),
        *(f"replace {old} => {' '.join(new)}" for old, new in sorted(replaced.items())),
    ]
    return "\n".join(lines) + "\n"


def imports(packages: Iterable[str]) -> str:
    """A Go file of the wrapper whose imports make Go resolve all dependencies of these packages. Never compiled."""
    lines = ["//go:build never", "", f"package {WRAPPER.rpartition('/')[2]}", ""]
    return "\n".join([*lines, *(f'import _ "{each}"' for each in packages)]) + "\n"


def unknown_sums(pinned: str, used: str) -> list[str]:
    """Modules that a build would use without a pinned checksum. A wrong checksum is refused by Go itself."""
    known = set(pinned.splitlines())
    return sorted({" ".join(line.split(" ")[:2]) for line in used.splitlines() if line and line not in known})


def not_served(output: str) -> list[str]:
    """Modules that a proxy permanently refuses, with its reply, from the output of `go list`; each once.

    `pkg/x.go:42:2: k8s.io/api@v0.32.13: reading https://proxy/k8s.io/api/@v/v0.32.13.zip: 403 Forbidden`
    """
    return sorted({f"{module} ({answer})" for module, answer in NOT_SERVED.findall(output)})


def go_version(text: str) -> tuple[int, int, int]:
    """`go1.26.8` as a comparable tuple; a pre-release counts as the release."""
    found = GO_VERSION.match(text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)
