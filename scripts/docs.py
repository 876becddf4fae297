"""Write the generated pages under docs/ anew: the original's fields, the schema, the picture, the list of decisions."""

from __future__ import annotations

import json
from pathlib import Path

from picture import picture

from protokube.nodeup.reasons import REASONS
from protokube.spec.kops_table import their_fields, verdict
from protokube.spec.schema import json_schema

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """# What becomes of each field of a kops document

Made by `make docs` from the tables the translation itself uses; do not edit.

Documents of `kops.k8s.io/v1alpha2` (older spelling `kops/v1alpha2`) are accepted as they are. For every field of
theirs, of every release from 1.10 on, one of three things happens, and none in silence:

- **carried out**: it is in the complete configuration, under the same name unless another is given; *kept as given*
  means that it is passed on unread to the part that needs it (the cloud, the network's add-on, the runtime).
  What creates machines and installs them is not built yet (`limits.md`): until then the configuration is all there is;
- **ignored**: passed over with a warning, because the cluster is the same without it;
- **refused**: an error, because without it this would be another cluster than asked for.

A field that the original does not know either is ignored with a warning: the original drops it without a word.
Values are kept, after this normalisation: `kubernetesVersion: v1.34.0` is `1.34.0`, and `1.34` is its newest
release; `cloudProvider: baremetal` is `cloud: metal`; role `ControlPlane` is `Master`. A document for a Kubernetes
older than 1.20 completes in the form of 1.20, for reading, with a warning. Kubelet settings are listed once; they hold
for `kubelet` and `masterKubelet` of a cluster and `kubelet` of a group. `[]` marks a list, `{}` a mapping by name.
"""

MACHINE = """# What nodeup makes true of a machine

Made by `make docs` from `nodeup/reasons.py`; do not edit.

nodeup reads what the machine is told (`setup.json`, which holds no secret) and the facts of its operating system, and
makes the following true. Nothing else is touched, and a second run changes nothing. What depends on the distribution is
decided on the machine: containerd is the distribution's own package where it fits that Kubernetes, else an archive with
a pinned digest. `*` stands for any name; the first row that fits counts.

Before anything is changed, a machine that cannot become what it should be is refused with every reason at once: an
unsupported distribution, no systemd, cgroup v1 with a kubelet of 1.35 or later, swap that the kubelet would not bear, a
clock that nobody may set, another cluster's machine, a name that is no name of a Node, two cgroup drivers, a missing
program for its processor. `protokube nodeup --target plan` shows the list for one machine.

In a container the clock, modules, and kernel parameters outside of the container's network are left to its host. On a
master, files that the agent keeps up to date are written only where they are missing.
"""


def kops_page() -> str:
    lines = [HEAD]
    counts: dict[str, int] = {}
    for kind in ("Cluster", "InstanceGroup"):
        lines += [f"\n## {kind}\n", "| field | what becomes of it | |", "|---|---|---|"]
        for of, path in their_fields():
            if of == kind:
                told = verdict(kind, path)
                assert told, f"no verdict on {kind} {path}"
                counts[told.what] = counts.get(told.what, 0) + 1
                lines.append(f"| `{path}` | {told.what} | {told.note} |")
    total = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    return "\n".join(lines).replace(HEAD, f"{HEAD}\nIn all: {total}.\n") + "\n"


def decisions_page() -> str:
    """Each decision by its title; `make docs` writes the list anew."""
    titles = {
        page.name: page.read_text().partition("\n")[0].removeprefix("# ")
        for page in sorted((DOCS / "decisions").glob("0*.md"))
    }
    rows = "".join(f"- [{title}]({name})\n" for name, title in titles.items())
    return f"# Decisions\n\nChoices that were hard, with their reasons and costs.\n\n{rows}"


def machine_page() -> str:
    """One row for each kind of task of `nodeup.model`, in the words of `nodeup.reasons`."""
    rows = "".join(
        f"| {each.key.partition(' ')[0]} | `{each.key.partition(' ')[2]}` | {each.why} | {each.field or 'nothing'} |"
        f" {'masters' if each.masters else 'all'} |\n"
        for each in REASONS
    )
    return f"{MACHINE}\n| kind | of | why | what changes it in the spec | on |\n|---|---|---|---|---|\n{rows}"


def pages() -> dict[Path, str]:
    """Each generated page with its content; a test compares them with what is there."""
    return {
        DOCS / "kops-fields.md": kops_page(),
        DOCS / "protokube.schema.json": json.dumps(json_schema(), indent=2) + "\n",
        DOCS / "architecture.svg": picture(),
        DOCS / "nodeup-machine.md": machine_page(),
        DOCS / "decisions/README.md": decisions_page(),
    }


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, "utf-8")
        print(f"wrote {page.relative_to(DOCS.parent)}")
