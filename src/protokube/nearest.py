"""A name that does not exist, and the one that was probably meant. For every kind of name, in the same words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from protokube.errors import NotFound

SHOWN = 12
"""An error lists no more names than this."""


def near(word: str, known: Iterable[str]) -> str:
    """A hint with the most similar known word; "" if none is similar."""
    known = list(known)
    folded = {_fold(each): each for each in known}
    same = folded.get(_fold(word))
    close = [same] if same else difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else ""


def no_such(
    kind: str, name: str, known: Iterable[str], *, also: Iterable[str] = (), where: str = "", hint: str = ""
) -> NotFound:
    """The error for a name that does not exist: what there is, and what was probably meant, else `hint`.

    `also` are other names for the same things; they are matched, and not listed. `where` says where we looked.
    """
    names = list(dict.fromkeys(known))
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return NotFound(
        f"there is no {kind} {name!r}{f' {where}' if where else ''}",
        saw=f"{', '.join(names[:SHOWN])}{more}" or "none at all",
        hint=near(name, [*names, *also]) or hint,
    )


def _fold(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")
