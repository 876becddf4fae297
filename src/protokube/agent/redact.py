"""Remove what looks like a secret from the free text of a document before it leaves this machine. Pure.

Nothing of a status is made from keys or tokens. But it quotes errors of other programs, and those may quote anything.
So free text is searched for the forms that secrets have; one that is not a secret may be hit, which costs a word.
Identifiers (names, ids, addresses) are never changed: two machines whose names look alike afterwards would become one.

A text is cut before it is searched, since some of the forms take longer than the text is long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

LONGEST = 2000
"""Characters that are kept of one text."""
REMOVED = "[removed]"
FREE = frozenset({"text", "saw", "hint", "why", "errors"})
"""Fields that hold sentences. All others hold identifiers, figures and words of our own."""

_QUOTED = r"""(?P<open>\\*["'`]).*?(?:(?<!\\)(?P=open)|\Z)"""
"""A quoted value, whose quotes may be escaped themselves; up to the end of the text if it was cut off."""
_BARE = r"""[^\s"'`\\][^\s]*"""
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
_NAME = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|credential|cookie|signature"
    r"|(?:api|access|private|signing|encryption|client|session)[ _-]?key(?![\w-]*-?file))"
)
_A_FILE = r"(?![\w-]{0,40}(?:file|path|dir|folder)\b)"

Replace = Callable[["re.Match[str]"], str]


def _whole(_found: re.Match[str]) -> str:
    return REMOVED


def _after(found: re.Match[str]) -> str:
    """What introduces the secret stays, so that a reader sees what was removed."""
    return f"{found['keep']}{REMOVED}"


def _mixed(found: re.Match[str]) -> str:
    """Long runs of letters and digits, if they are of all kinds: paths and names are in small letters."""
    run = found[0]
    kinds = (any(map(str.isupper, run)), any(map(str.islower, run)), any(map(str.isdigit, run)))
    return REMOVED if all(kinds) else run


SECRETS: tuple[tuple[re.Pattern[str], Replace], ...] = (
    (re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", re.DOTALL), _whole),  # PEM, also if cut off
    (re.compile(r"\beyJ[\w-]{8,}\.[\w.-]*"), _whole),  # JSON web tokens
    (re.compile(r"\bya29\.[\w.-]+"), _whole),  # access tokens of Google
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}"), _whole),  # key ids of AWS
    (re.compile(r"\b(?:gh[opsur]_|github_pat_|glpat-|xox[a-z]-)[\w-]{10,}"), _whole),
    (re.compile(r"(?<![\w.-])[a-z0-9]{6}\.[a-z0-9]{16}(?![\w-]|\.[a-z0-9])"), _whole),  # bootstrap tokens
    (re.compile(r"(?<=://)(?:[^\s:/@]*:\S*|[^\s/@]+)(?=@)"), _whole),  # credentials in a URL
    (
        re.compile(
            r"(?P<keep>(?i:\bauthorization)(?:\\*[\"'])?\s{0,8}[=:]\s{0,8}\\*[\"']?(?i:digest|aws4-\S+)\s+)[^\r\n\"']*"
        ),
        _after,
    ),
    (
        re.compile(
            r"(?P<keep>(?i:\bauthorization)(?:\\*[\"'])?\s{0,8}[=:]\s{0,8}\\*[\"']?(?i:(?:basic|bearer|negotiate|ntlm|token|apikey|key)\s+)?)[^\s\"',]+"
        ),
        _after,
    ),
    (re.compile(r"(?P<keep>(?i:\bbearer)\s+)\S+"), _after),
    (re.compile(r"(?P<keep>(?i:\bbasic)\s+)(?=[A-Za-z+/]*[A-Z0-9=])[A-Za-z0-9+/]{6,}={0,2}"), _after),
    (
        re.compile(rf"(?P<keep>(?i:{_NAME}){_A_FILE}[\w.-]{{0,40}}(?:\\*[\"'`])?\s{{0,8}}(?:=>|:=|[=:])\s{{0,8}}){_VALUE}",
                   re.DOTALL),
        _after,
    ),
    (
        re.compile(
            rf"(?P<keep>(?<![\w-])--?[\w-]{{0,40}}?(?i:{_NAME}){_A_FILE}[\w-]{{0,40}}\s{{1,8}}){_VALUE}", re.DOTALL
        ),
        _after,
    ),
    (re.compile(r"(?<![0-9A-Za-z:-])(?=[0-9A-Fa-f]*[0-9])(?:[0-9a-f]{32,}|[0-9A-F]{32,})(?![0-9A-Za-z])"), _whole),
    (re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}"), _mixed),  # base64, also in its form for URLs
)  # fmt: skip


def redacted(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _free(value) if name in FREE else _value(value) for name, value in tree.items()}


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return redacted(value)
    return [_value(each) for each in value] if isinstance(value, list | tuple) else value


def _free(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):  # somebody's name for a part of the document, and no sentence
        return redacted(value)
    return [_free(each) for each in value] if isinstance(value, list | tuple) else value


def text(value: str) -> str:
    kept = value if len(value) <= LONGEST else _cut(value)
    for pattern, replace in SECRETS:
        kept = pattern.sub(replace, kept)
    return kept if len(value) <= LONGEST else f"{kept}…"


def _cut(value: str) -> str:
    """At the last word that fits: the first half of a secret has not its form."""
    kept = value[:LONGEST]
    return kept if value[LONGEST].isspace() else kept[: len(kept) - len(kept.rsplit(maxsplit=1)[-1])] or REMOVED
