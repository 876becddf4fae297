"""Write a complete configuration to the store: the path of each document, and the order of the writes."""

from __future__ import annotations

import io

from protokube.config.complete import Config
from protokube.config.document import documents, write_yaml
from protokube.store import Store, layout


def put_config(store: Store, config: Config, texts: list[tuple[str, str]]) -> dict[str, str]:
    """Write the groups, then the cluster, which refers to them, then the user's spec; the result for each path.

    After a crash in between, a reader may see a group of the new configuration beside the old cluster; running the
    command again completes it. A group that was removed from the spec stays in the store, unreferenced.
    """
    name = config.name
    cluster, *groups = documents(config)
    wanted = {layout.instance_group(name, each["metadata"]["name"]): _yaml(each) for each in groups}
    wanted[layout.complete_spec(name)] = _yaml(cluster)
    wanted[layout.config(name)] = spec_text(texts).encode()
    return {path: "written" if store.put(path, data) else "unchanged" for path, data in wanted.items()}


def spec_text(texts: list[tuple[str, str]]) -> str:
    """The user's documents of all files, as one text."""
    return "---\n".join(_whole_lines(text) for _, text in texts)


def _yaml(tree: dict[str, object]) -> bytes:
    out = io.StringIO()
    write_yaml([tree], out)
    return out.getvalue().encode()


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
