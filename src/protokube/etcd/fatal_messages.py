"""Find the messages with which etcd exited in its output. Pure, except for the local time zone of capnslog.

Lines have the format of zap (JSON, or with tabs), of capnslog in 3.4, or of a Go panic, with or without the prefix of a
container runtime. Users' keys and values get into etcd's log, too. So a message counts only if it is the whole message,
or the whole error, of a line that etcd writes when it exits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from protokube.etcd.faults import fatal_message
from protokube.members.fatal_messages import Ending, FatalMessage

CRI = re.compile(r"(\d{4}-\d\d-\d\dT\S+) (?:stdout|stderr) ([FP])\S* ?(.*)")
CAPNSLOG = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) ([A-Z]) \| ([a-z0-9/_-]+): (.*)")
CONSOLE = re.compile(r"(\d{4}-\d\d-\d\dT\S+)\t([a-z]+)\t(?:[^\t]*\t)*?([^\t]+?)(?:\t(\{.*\}))?")
PANIC = re.compile(r"panic: (.*)")
RUNTIME_PANIC = "panic: runtime error: "
ABOVE_THE_CAUSE = ("\t", "[signal ", "goroutine ", "panic(", "runtime.")
"""Lines between such a panic and the function that caused it; empty lines, too."""
RESTARTS = re.compile(r"restarting member ([0-9a-f]{1,16}) in cluster ([0-9a-f]{1,16}) at commit index \d+")
ENDS = frozenset({"panic", "fatal", "C"})
"""Log levels at which etcd exits."""
BEGINS = ("starting an etcd server", "etcd Version:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One parsed log line of any format."""

    message: str
    at: float | None
    level: str = ""
    fields: dict[str, str] | None = None
    go_panic: bool = False


def find(lines: Iterable[str]) -> tuple[FatalMessage, ...]:
    """All exit messages in their order. A later start of etcd discards all but LACKS_ACKNOWLEDGED.

    etcd repeats at each start that its data is corrupt or its member removed; an acknowledged index remains a proof.
    """
    found: list[FatalMessage] = []
    ids: tuple[int, int] | None = None
    at: float | None = None
    for text, written in _placed(_unwrapped(lines)):
        line = _parsed(text)
        at = written or line.at or at
        if line.message.startswith(BEGINS):
            found = [each for each in found if each.ending is Ending.LACKS_ACKNOWLEDGED]
            ids = None
        ids = _ids(line) or ids
        for sentence in _sentences(line):
            if (row := fatal_message(sentence)) is not None:
                message = FatalMessage(
                    ending=row[0].ending, sentence=sentence, at=at, acknowledged=row[1],
                    cluster_id=ids[0] if ids else None, member_id=ids[1] if ids else None,
                )  # fmt: skip
                if found and _key(found[-1]) == _key(message):
                    found.pop()  # zap and Go both print the same panic; so does the next start
                found.append(message)
    return tuple(found)


def _key(message: FatalMessage) -> tuple[object, ...]:
    return message.ending, message.sentence, message.member_id


def _sentences(line: Line) -> Iterator[str]:
    fields = line.fields or {}
    if line.go_panic or line.level in ENDS:
        yield line.message
        yield fields.get("error", "")
    elif line.message == "server error" or (line.level == "E" and line.fields is None):
        yield fields.get("error", line.message)


def _ids(line: Line) -> tuple[int, int] | None:
    """Cluster and member id, from the line that etcd writes when it restarts with existing data."""
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
    """Each line as etcd wrote it, with the timestamp of the container runtime, if there is one."""
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


def _placed(lines: Iterable[tuple[str, float | None]]) -> Iterator[tuple[str, float | None]]:
    """A panic of Go's runtime gets the function in which it happened: its message alone says nothing about the data."""
    panic: tuple[str, float | None] | None = None
    for text, written in lines:
        if panic is not None and text and not text.startswith(ABOVE_THE_CAUSE):
            yield f"{panic[0]} (in {text.partition('(0x')[0]})", panic[1]
            panic = None
        if text.startswith(RUNTIME_PANIC):
            panic = text, written
        elif text:
            yield text, written


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
    """capnslog writes local time without a zone."""
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:
        return None
