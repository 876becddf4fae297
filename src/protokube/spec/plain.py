"""Documents as plain values, for code that only passes them on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protokube.spec.decode import Reading, Tree, free_form
from protokube.spec.tree import read_documents


def plain_documents(texts: Iterable[tuple[str, str]]) -> Iterator[Tree]:
    for file, text in texts:
        for document in read_documents(text, file):
            yield free_form(document, "", file, Reading())
