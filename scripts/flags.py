"""Write the flag table of a minor version of Kubernetes or etcd, as its programs' own `--help` lists them.

    scripts/flags /var/cache/protokube/kubernetes/1.37.0
    scripts/flags /var/cache/protokube/etcd/3.6.8

`--compare` writes nothing, and says what the table that is there has otherwise. Hidden flags are in no `--help`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.config.flags import COMPONENTS

TABLES = Path(__file__).resolve().parents[1] / "src" / "protokube" / "config" / "tables"
PFLAG = re.compile(r"^ {2,6}(?:-\w, )?--(?P<name>[\w.-]+)(?:\[=[^\]]*\])?(?: (?P<type>\S+))? *(?P<text>.*)$")
DEFAULT = re.compile(r"\(default (?P<value>\"(?:[^\"\\]|\\.)*\"|\[[^\]]*\]|[^()]*)\)(?: \(DEPRECATED: .*)?$")
ETCD_FLAG = re.compile(r"^  --(?P<name>[\w-]+)(?: '?(?P<default>[^']*)'?)?$")
DEPRECATED = re.compile(r"\b(?:Deprecated|Will be deprecated)\b")
"""Of the flag. `'capnslog' will be deprecated` is about one of its values."""
SECTION = re.compile(r"^(?P<name>\S[^()]*?)(?: \(.*\))?:$")

Table = dict[str, dict[str, Any]]


def help_of(program: Path) -> str:
    ran = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=False)
    return ran.stdout if len(ran.stdout) > len(ran.stderr) else ran.stderr


def kubernetes_flags(text: str) -> Table:
    """What pflag prints: a line for each flag, those of long texts continued."""
    found: Table = {}
    for entry in _entries(text):
        flag = PFLAG.match(entry)
        assert flag, entry
        told: dict[str, Any] = {}
        if default := DEFAULT.search(entry):
            told["default"] = _plain(default["value"])
        if "DEPRECATED" in entry:
            told["deprecated"] = True
        told["type"] = flag["type"] or "bool"
        found[flag["name"]] = told
    return dict(sorted(found.items()))


def _entries(text: str) -> list[str]:
    entries: list[str] = []
    for line in text.splitlines():
        if PFLAG.match(line):
            entries.append(line)
        elif entries and line.startswith(" " * 10):
            entries[-1] += f" {line.strip()}"
    return entries


def _plain(value: str) -> str:
    return str(json.loads(value)) if value.startswith('"') else value


def etcd_flags(text: str) -> Table:
    """What etcd prints: sections of flags, each with its default, and texts below them."""
    found: Table = {}
    section, name = "", ""
    for line in text.splitlines():
        if heading := SECTION.match(line):
            section, name = heading["name"], ""
        elif flag := ETCD_FLAG.match(line):
            name = flag["name"]
            found[name] = {"default": flag["default"] or "", "section": section}
        elif name and DEPRECATED.search(line):
            found[name]["deprecated"] = True
    return {name: dict(sorted(told.items())) for name, told in sorted(found.items())}


def read_folder(folder: Path) -> tuple[str, dict[str, Any]]:
    """The name of the table of these programs, and the table."""
    if (folder / "etcd").exists():
        version = ETCD.version(folder / "etcd")
        return f"etcd-{_minor(version)}", {"version": _minor(version), "etcd": etcd_flags(help_of(folder / "etcd"))}
    version = KUBERNETES.version(folder / "kubelet")
    programs = {name: kubernetes_flags(help_of(folder / name)) for name in sorted(COMPONENTS.values())}
    return _minor(version), {**programs, "version": _minor(version)}


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    found = []
    for component in sorted(new.keys() - {"version"}):
        before, now = old.get(component, {}), new[component]
        found += [f"{component} --{flag}: gone" for flag in sorted(before.keys() - now.keys())]
        found += [f"{component} --{flag}: new {now[flag]}" for flag in sorted(now.keys() - before.keys())]
        changed = sorted(flag for flag in before.keys() & now.keys() if before[flag] != now[flag])
        found += [f"{component} --{flag}: {before[flag]} is now {now[flag]}" for flag in changed]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare", metavar="TABLE", help="a table that is there, such as 1.36")
    asked = parser.parse_args()
    name, table = read_folder(asked.folder)
    if asked.compare:
        old = json.loads((TABLES / f"{asked.compare}.json").read_text("utf-8"))
        print("\n".join(differences(old, table)) or f"{asked.compare} has the same")
        return
    file = TABLES / f"{name}.json"
    file.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", "utf-8")
    print(f"{file.name}: {sum(len(each) for key, each in table.items() if key != 'version')} flags")


if __name__ == "__main__":
    sys.exit(main())
