"""The verdict as text and as data. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from soak.conformance.specs import Spec, Verdict

LONGEST = 300


def render(verdict: Verdict, drills: Sequence[str] = ()) -> str:
    """Failures come last, because they matter most to the reader."""
    lines = [f"  {group}: {count}" for group, count in by_group(verdict.passed).items()]
    output = [f"{len(verdict.passed)} passed", *lines]
    output += ["", f"{len(verdict.not_run)} not run"]
    reasons = Counter(verdict.not_run.values())
    output += [f"  {count}: {_short(reason)}" for reason, count in reasons.most_common()]
    if drills:
        output += ["", f"{len(drills)} drills meanwhile", *(f"  {each}" for each in drills)]
        output += ["", f"{len(verdict.retried)} lost a request that a client's retry would have saved, and passed then"]
        output += [f"  {name}\n      {_short(why)}" for name, why in sorted(verdict.retried.items())]
    output += ["", f"{len(verdict.failed)} failed"]
    output += [f"  {name}\n      {_short(why)}" for name, why in sorted(verdict.failed.items())]
    ran = len(verdict.passed) + len(verdict.retried) + len(verdict.failed)
    return "\n".join([*output, "", f"{len(verdict.passed)} of {ran} that ran passed ({verdict.share:.1%})"])


def by_group(names: Iterable[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(Spec(name=name, state="").group for name in names).items()))


def as_data(verdict: Verdict, drills: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "passed": list(verdict.passed),
        "retried": dict(verdict.retried),
        "failed": dict(verdict.failed),
        "notRun": dict(verdict.not_run),
        "seconds": {name: round(took, 1) for name, took in sorted(verdict.seconds.items())},
        "drills": list(drills),
    }


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
