"""Find etcd's last words in its output: pure but for the time zone of capnslog.

Lines come as zap writes them (JSON, or with tabs), as capnslog of 3.4 does, and as Go prints a panic; around each there
may be what a container runtime adds. Keys and values of users get into etcd's log, too. So a sentence counts only as
the whole message, or the whole error, of a line that etcd writes when it ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from protokube.etcd.faults import last_words
from protokube.members.lastwords import Ending, LastWords

CRI = re.compile(r"(\d{4}-\d\d-\d\dT\S+) (?:stdout|stderr) ([FP])\S* ?(.*)")
CAPNSLOG = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) ([A-Z]) \| ([a-z0-9/_-]+): (.*)")
CONSOLE = re.compile(r"(\d{4}-\d\d-\d\dT\S+)\t([a-z]+)\t(?:[^\t]*\t)*?([^\t]+?)(?:\t(\{.*\}))?")
PANIC = re.compile(r"panic: (.*)")
RESTARTS = re.compile(r"restarting member ([0-9a-f]{1,16}) in cluster ([0-9a-f]{1,16}) at commit index \d+")
ENDS = frozenset({"panic", "fatal", "C"})
"""Levels of lines after which there is no more etcd."""
BEGINS = ("starting an etcd server", "etcd Version:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one line says, whatever its form."""

    message: str
    at: float | None
    level: str = ""
    fields: dict[str, str] | None = None
    go_panic: bool = False


def find(lines: Iterable[str]) -> tuple[LastWords, ...]:
    """All last words in the order in which they were said. A later start of etcd takes back all but a proof.

    That data is corrupt, or a member removed, an etcd says at each start; an index once acknowledged stays so.
    """
    found: list[LastWords] = []
    ids: tuple[int, int] | None = None
    at: float | None = None
    for text, written in _unwrapped(lines):
        line = _parsed(text)
        at = written or line.at or at
        if line.message.startswith(BEGINS):
            found = [each for each in found if each.ending is Ending.LACKS_ACKNOWLEDGED]
            ids = None
        ids = _ids(line) or ids
        for sentence in _sentences(line):
            if (row := last_words(sentence)) is not None:
                words = LastWords(
                    ending=row[0].ending, sentence=sentence, at=at, acknowledged=row[1],
                    cluster_id=ids[0] if ids else None, member_id=ids[1] if ids else None,
                )  # fmt: skip
                if found and _key(found[-1]) == _key(words):
                    found.pop()  # zap, and then Go, say the same panic; so does the next start
                found.append(words)
    return tuple(found)


def _key(words: LastWords) -> tuple[object, ...]:
    return words.ending, words.sentence, words.member_id


def _sentences(line: Line) -> Iterator[str]:
    fields = line.fields or {}
    if line.go_panic or line.level in ENDS:
        yield line.message
        yield fields.get("error", "")
    elif line.message == "server error" or (line.level == "E" and line.fields is None):
        yield fields.get("error", line.message)


def _ids(line: Line) -> tuple[int, int] | None:
    """Cluster and member, from the line that etcd writes when it goes on with data."""
    if line.message == "restarting local member" and line.fields is not None:
        texts = line.fields.get("cluster-id", ""), line.fields.get("local-member-id", "")
    elif match := RESTARTS.fullmatch(line.message):
        texts = match[2], match[1]
    else:
        return None
    try:
        return int(texts[0], 16), int(texts[1], 16)
    except ValueError:
        return None


def _unwrapped(lines: Iterable[str]) -> Iterator[tuple[str, float | None]]:
    """Each line as etcd wrote it, with the time that the container runtime added, if one did."""
    begun = ""
    for line in lines:
        if match := CRI.fullmatch(line):
            begun += match[3]
            if match[2] == "F":
                yield begun, _time(match[1])
                begun = ""
        elif line.startswith('{"log":') and (document := _document(line)) is not None:  # docker's own file
            yield str(document.get("log", "")).rstrip("\n"), _time(document.get("time"))
        else:
            yield line, None


def _parsed(text: str) -> Line:
    if text.startswith("{") and (document := _document(text)) is not None:
        fields = {name: value for name, value in document.items() if isinstance(value, str)}
        return Line(
            message=fields.get("msg", ""), at=_time(document.get("ts")), level=fields.get("level", ""), fields=fields
        )
    if match := CAPNSLOG.fullmatch(text):
        return Line(message=match[4], at=_local_time(match[1]), level=match[2])
    if match := CONSOLE.fullmatch(text):
        fields = {name: str(value) for name, value in (_document(match[4] or "{}") or {}).items()}
        return Line(message=match[3], at=_time(match[1]), level=match[2], fields=fields)
    if match := PANIC.fullmatch(text):
        return Line(message=match[1], at=None, go_panic=True)
    return Line(message="", at=None)


def _document(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _time(written: object) -> float | None:
    if isinstance(written, int | float):
        return float(written)
    try:
        found = datetime.fromisoformat(str(written))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _local_time(written: str) -> float | None:
    """capnslog does not write its zone; it is that of the machine."""
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:
        return None
