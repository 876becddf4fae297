"""YAML by the C library that PyYAML is built with, where it is: same result in a tenth of the time.

Deep nesting is refused first: the parser in C overflows the stack there and kills the process. PyYAML is imported with
the first use, since programs that read no YAML should not load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

DEEPEST = 100


class TooDeep(ValueError):
    """The text is nested deeper than anything that we or Kubernetes write."""

    def __init__(self) -> None:
        super().__init__(f"nested more than {DEEPEST} levels deep")


def load(text: str | bytes) -> Any:
    """The only document of this text. Raises yaml.YAMLError, and ValueError for nesting and invalid code points."""
    import yaml

    check_depth(text)
    return yaml.load(text, Loader=loader())  # noqa: S506 (a safe one)


def dump(tree: Any) -> str:
    """One document, with fields in the order they have."""
    import yaml

    return str(yaml.dump(tree, Dumper=dumper(), sort_keys=False))


def check_depth(text: str | bytes) -> None:
    """Check the first document's depth by its events: composing nodes recurses once for each level."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader()):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise TooDeep


def loader() -> type[yaml.SafeLoader]:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def dumper() -> type[yaml.SafeDumper]:
    import yaml

    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)
