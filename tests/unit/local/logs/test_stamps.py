"""The time of a line, as each program of a cluster writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.local.logs import stamps
from protokube.local.logs.stamps import stamp

AT = datetime(2026, 3, 5, 14, 7, 9, 250000, UTC).timestamp()


@pytest.fixture(autouse=True)
def somewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine three hours and a half east of Greenwich."""
    monkeypatch.setenv("TZ", "XST-3:30")
    time.tzset()
    stamps._local.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()
    stamps._local.cache_clear()


@pytest.mark.parametrize(
    "line",
    [
        '{"level":"info","ts":"2026-03-05T14:07:09.250000Z","caller":"a.go:1","msg":"etcd"}',
        '{"level":"info","ts":"2026-03-05T17:37:09.250+0330","msg":"etcd with its zone"}',
        '{"ts":1772719629250.0,"msg":"kube-apiserver in JSON"}',
        '{"ts":1772719629.25,"msg":"the same in seconds"}',
        "I0305 17:37:09.250000       1 main.go:12] klog, in local time",
        "2026-03-05 17:37:09,250 round 1, 0.19s: an agent, in local time",
        'time="2026-03-05T14:07:09.250000000Z" level=info msg="containerd"',
        "2026-03-05T14:07:09.250Z any other",
    ],
)
def test_every_program_of_a_cluster_is_understood(line: str) -> None:
    assert stamp(line, AT + 100) == pytest.approx(AT, abs=1e-3)


@pytest.mark.parametrize(
    "line", ["", "Traceback (most recent call last):", "I9999 99:99:99.0 x", "2026-13-45 10:00:00,1", "{"]
)
def test_a_line_without_a_time_has_none(line: str) -> None:
    assert stamp(line, AT) is None


def test_a_line_of_december_that_is_read_in_january_is_of_last_year() -> None:
    january = datetime(2027, 1, 2, tzinfo=UTC).timestamp()

    assert (
        stamp("W1231 23:59:59.000000       1 x.go:1] late", january)
        == datetime(2026, 12, 31, 20, 29, 59, tzinfo=UTC).timestamp()
    )


@pytest.mark.parametrize(
    "line",
    [
        '{"ts":1772719629250000000,"msg":"nanoseconds"}',
        '{"ts":9' + "9" * 300 + "}",
        "9999-12-31T23:59:59-12:00 after the end of time",
        "0001-01-01T00:00:00+12:00 before its beginning",
    ],
)
def test_a_number_that_is_no_date_is_no_time(line: str) -> None:
    assert stamp(line, AT) is None


@given(st.text() | st.from_regex(stamps.KNOWN))
def test_no_line_breaks_it(line: str) -> None:
    found = stamp(line, AT)

    assert found is None or datetime.fromtimestamp(found, UTC).year < 10000
