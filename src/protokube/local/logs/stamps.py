"""When a line was logged, as the programs of a cluster write it. Pure.

klog and Python write local time, klog without a year: that of the time at which the line is read, or the year before.
"""

from __future__ import annotations

import re
import time
from datetime import datetime
from functools import lru_cache

SEARCHED = 400
"""Characters of a line in which its time is looked for."""
DAY = 86400.0
ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
KNOWN = re.compile(
    rf"(?P<iso>{ISO})(?P<fraction>[.,]\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?"
    r"|[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)(?P<parts>\.\d+)? "
    rf'|(?:\{{[^}}]{{0,80}}?"ts":"|time=")(?P<iso2>{ISO})(?P<fraction2>[.,]\d+)?(?P<zone2>Z|[+-]\d\d:?\d\d)?"'
    r'|\{[^}]{0,80}?"ts":(?P<epoch>\d+(?:\.\d+)?)',
    re.ASCII,
)
MILLISECONDS = 1e11
"""A number of seconds as great as this is one of milliseconds."""
LAST = 253402300799.0
"""The end of the year 9999: a greater number cannot be shown as a date, and is no time."""


def stamp(line: str, now: float) -> float | None:
    """Seconds since 1970; None if the line has no time of its own."""
    found = KNOWN.match(line, 0, SEARCHED)
    seconds = _seconds(found, now) if found else None
    return seconds if seconds is not None and 0 <= seconds < LAST else None


def _seconds(found: re.Match[str], now: float) -> float | None:
    try:
        if found["epoch"]:
            number = float(found["epoch"])
            return number / 1000 if number > MILLISECONDS else number
        if found["clock"]:
            year = time.localtime(now).tm_year
            seconds = _local(f"{year}-{found['month']}-{found['day']} {found['clock']}")
            if seconds > now + DAY:
                seconds = _local(f"{year - 1}-{found['month']}-{found['day']} {found['clock']}")
            return seconds + float(found["parts"] or 0)
        iso, fraction, zone = (found[name] or found[f"{name}2"] for name in ("iso", "fraction", "zone"))
        whole = _zoned(iso, zone) if zone else _local(iso)
        return whole + float((fraction or ".0").replace(",", "."))
    except (ValueError, OverflowError):  # such as month 13, or the 29th of February in another year
        return None


@lru_cache(4096)
def _local(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@lru_cache(4096)
def _zoned(text: str, zone: str) -> float:
    return datetime.fromisoformat(f"{text}{'+00:00' if zone == 'Z' else zone}").timestamp()
