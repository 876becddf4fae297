"""The specs of the suite, which of them run, and their results, from Ginkgo's reports. Pure.

A spec is one test of the suite. A spec that was not run always has a reason: it is not in the chosen part, it skips
itself with a message, or one of its images is not available here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SERIAL = re.compile(r"\[(Serial|Disruptive)\]")
PASSED, SKIPPED, PENDING = "passed", "skipped", "pending"
UNPULLED = re.compile(r'(?:Failed to pull image|Back-off pulling image|pulling image) \\?"([^"\\]+)')
UNREACHED = re.compile(r'Failed to pull image \\?"([^"\\]+)\\?".*failed to do request')
"""Matches a test that pulls from a registry although every host has the image."""
TRANSIENT = re.compile(
    "|".join(
        (
            r"connection refused", r"connection reset by peer", r"broken pipe", r"\bEOF\b", r"i/o timeout",
            r"http2: client connection lost", r"http2: server sent GOAWAY", r"TLS handshake timeout",
            r"use of closed network connection", r"apiserver (?:is shutting down|not ready)",
            r"etcdserver: (?:leader changed|request timed out|no leader|server stopped)",
            r"currently unable to handle the request", r"net/http: (?:request canceled|timeout awaiting)",
            r"no route to host", r"request did not complete within", r"[Ww]atch closed unexpectedly",
        )
    )
)  # fmt: skip
"""Errors of a request whose server goes away: a client that retries gets its reply from another server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One test and its result."""

    name: str
    state: str
    """Ginkgo's state: passed, failed, timedout, panicked, interrupted, aborted, skipped, pending."""
    seconds: float = 0.0
    message: str = ""
    """Why it failed or skipped."""
    output: str = ""
    """Its log output."""

    @property
    def is_passed(self) -> bool:
        return self.state == PASSED

    @property
    def is_run(self) -> bool:
        return self.state not in (SKIPPED, PENDING)

    @property
    def group(self) -> str:
        """`sig-apps`."""
        found = re.match(r"\[(sig-[a-z-]+)\]", self.name)
        return found[1] if found else "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a whole run."""

    passed: Sequence[str]
    retried: Mapping[str, str]
    """Tests that lost a request or a watch when a machine was killed, and passed when rerun; with the reason."""
    failed: Mapping[str, str]
    not_run: Mapping[str, str]
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of run tests that passed."""
        ran = len(self.passed) + len(self.retried) + len(self.failed)
        return len(self.passed) / ran if ran else 0.0


def read_report(document: Any) -> list[Spec]:
    """The specs of a report; set-up and clean-up nodes are included only if they failed."""
    found = []
    for suite in document:
        for each in suite.get("SpecReports") or ():
            state, failure = str(each["State"]), each.get("Failure") or {}
            is_test = each.get("LeafNodeType") == "It"
            if not is_test and state in (PASSED, SKIPPED, PENDING):
                continue
            texts = [*(each.get("ContainerHierarchyTexts") or ()), each.get("LeafNodeText") or each["LeafNodeType"]]
            found.append(
                Spec(
                    name=" ".join(texts),
                    state=state,
                    seconds=each.get("RunTime", 0) / 1e9,
                    message=_message(failure),
                    output=each.get("CapturedGinkgoWriterOutput", ""),
                )
            )
    return sorted(found, key=lambda spec: spec.name)


def _message(failure: Mapping[str, Any]) -> str:
    forwarded = failure.get("ForwardedPanic", "")
    return " ".join(f"{failure.get('Message', '')} {forwarded}".split())


def is_serial(name: str) -> bool:
    return SERIAL.search(name) is not None


def pattern(names: Iterable[str]) -> str:
    """A focus that matches exactly these specs; Ginkgo matches it against the suite's name plus the spec's name."""
    return f"({'|'.join(re.escape(name) for name in sorted(names))})$"


def chosen(specs: Iterable[Spec], focus: str, skip: str, *, serial: bool) -> tuple[list[str], dict[str, str]]:
    """Of the specs in focus: the names to run, and the others with the reason."""
    run: list[str] = []
    left: dict[str, str] = {}
    for name in sorted({spec.name for spec in specs if re.search(focus, spec.name)}):
        if skip and re.search(skip, name):
            left[name] = f"skipped by {skip!r}"
        elif is_serial(name) and not serial:
            left[name] = "serial: it needs the cluster for itself"
        else:
            run.append(name)
    return run, left


def image_not_had(spec: Spec, unavailable: Iterable[str]) -> str:
    """Which unavailable image made a spec fail; "" if it failed for another reason."""
    text = f"{spec.message}\n{spec.output}"
    if missing := set(UNPULLED.findall(text)) & set(unavailable):
        return f"image not available: {min(missing)}"
    if insisted := set(UNREACHED.findall(text)):
        return f"it pulls from a registry, and none is reached: {min(insisted)}"
    return ""


def lost_a_request(spec: Spec) -> bool:
    """Whether it failed by an error that a retry of the same request would have avoided."""
    return TRANSIENT.search(spec.message) is not None


def judge(
    names: Sequence[str],
    first: Iterable[Spec],
    second: Iterable[Spec] = (),
    *,
    unavailable: Iterable[str] = (),
    left: Mapping[str, str] | None = None,
    under_fire: bool = False,
) -> Verdict:
    """The verdict on these specs.

    `second` are the reruns of failed specs. A rerun counts only if drills ran (`under_fire`) and a request was lost.
    """
    images, again = set(unavailable), {spec.name: spec for spec in second if spec.is_run}
    seen = {spec.name: spec for spec in first}
    passed: list[str] = []
    retried: dict[str, str] = {}
    failed: dict[str, str] = {}
    not_run = dict(left or {})
    for name in names:
        spec = seen.get(name)
        if spec is None:
            failed[name] = "the run ended before it was its turn"
        elif not spec.is_run:
            not_run[name] = spec.message or "the suite left it out"
        elif spec.is_passed:
            passed.append(name)
        elif why := image_not_had(spec, images):
            not_run[name] = why
        elif under_fire and lost_a_request(spec) and (other := again.get(name)) and other.is_passed:
            retried[name] = spec.message
        else:
            failed[name] = _failure(spec, again.get(name))
    for spec in seen.values():  # set-up and clean-up of the whole suite
        if spec.name not in names and spec.is_run and not spec.is_passed:
            failed[spec.name] = _failure(spec, None)
    seconds = {spec.name: spec.seconds for spec in seen.values() if spec.is_run}
    return Verdict(passed=tuple(passed), retried=retried, failed=failed, not_run=not_run, seconds=seconds)


def _failure(spec: Spec, again: Spec | None) -> str:
    second = "" if again is None else "; passed when run again" if again.is_passed else "; failed again"
    return f"{spec.state}: {spec.message}{second}"
