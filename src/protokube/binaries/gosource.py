"""Describe a build from published Go modules: a wrapper module that requires them, and the sums it may use. Pure.

`go install MODULE@VERSION` refuses a module that replaces others, and Kubernetes replaces its staging modules by
folders that are in no module zip. So a wrapper requires it, and replaces each staging module by the version of it that
was published with the same release. Which they are is read from the release's own go.mod, together with the settings
that count for a main module only.
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
    """What the go.mod of a release says that counts for a main module only."""

    go: str
    """The oldest Go that compiles it, `1.26.0`."""
    debug: Mapping[str, str]
    replaced: Mapping[str, tuple[str, str]]
    """Module and version by the module that they stand for."""
    staged: Sequence[str]
    """Modules that lie in the release's own folders."""


def read_go_mod(document: Mapping[str, Any]) -> GoMod:
    """From what `go mod edit -json` prints."""
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
    """The go.mod of the main module that is built.

    `staging`: the version of the modules in the release's own folders, where its go.mod does not say it.
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
    """A file of the wrapper that makes Go resolve all that these packages need. Nobody compiles it."""
    lines = ["//go:build never", "", f"package {WRAPPER.rpartition('/')[2]}", ""]
    return "\n".join([*lines, *(f'import _ "{each}"' for each in packages)]) + "\n"


def unknown_sums(pinned: str, used: str) -> list[str]:
    """Modules that a build would use and whose sums we do not know. One with another sum Go itself refuses."""
    known = set(pinned.splitlines())
    return sorted({" ".join(line.split(" ")[:2]) for line in used.splitlines() if line and line not in known})


def not_served(output: str) -> list[str]:
    """Modules that a proxy refused for good, with its answer, out of what `go list` wrote: each once.

    `pkg/x.go:42:2: k8s.io/api@v0.32.13: reading https://proxy/k8s.io/api/@v/v0.32.13.zip: 403 Forbidden`
    """
    return sorted({f"{module} ({answer})" for module, answer in NOT_SERVED.findall(output)})


def go_version(text: str) -> tuple[int, int, int]:
    """`go1.26.8` as numbers that compare; a preview counts as the release."""
    found = GO_VERSION.match(text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)
