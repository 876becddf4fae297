"""Whatever is done to a good spec, the answer is a configuration or a list of problems, never a bug."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.config.complete import Config, complete
from protokube.errors import InvalidSpec
from protokube.spec.parse import read

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.yaml"))
DOCUMENTS = {path.stem: list(yaml.load_all(path.read_text(), Loader=yaml.BaseLoader)) for path in EXAMPLES}
JUNK = st.one_of(
    st.none(),
    st.sampled_from(
        ["", "0", "-1", "true", "no", "x", "a b", "1.2.3", "10.0.0.0/8", "::/0", "🐟", "9" * 30, "a" * 300]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.sampled_from(["", "x", "us-east-1a", {"name": "a"}, {"name": ""}, None]), max_size=3),
    st.dictionaries(
        st.sampled_from(["name", "x", "image", "members", "zone"]), st.sampled_from(["", "x", []]), max_size=2
    ),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with each of its keys or positions."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for key, child in pairs:
        yield value, key
        yield from places(child)


def mutate(documents: list[Any], data: st.DataObject) -> list[Any]:
    """Up to four changes anywhere: drop, replace, double or rename."""
    changed = copy.deepcopy(documents)
    for _ in range(data.draw(st.integers(1, 4))):
        found = list(places(changed))
        if not found:
            break
        holder, key = data.draw(st.sampled_from(found))
        match data.draw(st.sampled_from(["drop", "replace", "double", "rename"])):
            case "drop":
                del holder[key]
            case "replace":
                holder[key] = copy.deepcopy(data.draw(JUNK))
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case "rename" if isinstance(holder, dict):
                name = data.draw(st.sampled_from(["name", "cloud", "zones", "subnets", "kubelet", "z"]))
                holder[name] = copy.deepcopy(holder[key])
            case _:
                holder[key] = ""
    return changed


def answer(documents: list[Any]) -> Config | InvalidSpec:
    text = yaml.safe_dump_all(documents, allow_unicode=True)
    try:
        return complete(read([("mutated.yaml", text)]))
    except InvalidSpec as error:
        return error


@pytest.mark.parametrize("name", DOCUMENTS)
@examples(150, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mutated_spec_gives_a_configuration_or_problems_and_nothing_else(name: str, data: st.DataObject) -> None:
    given_back = answer(mutate(DOCUMENTS[name], data))
    if isinstance(given_back, InvalidSpec):
        assert given_back.problems
        assert all(problem.message for problem in given_back.problems)
    else:
        assert given_back.rendered[""]["kubeAPIServer"]["flags"]
