"""Plan which pods to stop and to start, from the manifests and the running pods. Pure.

An invalid manifest does not stop the pod that runs from it. A missing file, or a dangling link, stops its pod. A
changed pod is stopped first, and started when it is gone: two etcds on one directory would be worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protokube.local.pods.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One file of the manifest folder: the pod in it, or why there is none."""

    file: str
    pod: Pod | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Desired:
    pods: Mapping[str, Pod]
    """By file: what to run."""
    problems: Mapping[str, str]
    """By file: problems to show in the status."""


def choose(readings: Sequence[Reading], before: Mapping[str, Pod]) -> Desired:
    """The desired pods; `before` are those of the last round, by file.

    If two files have a pod of the same name, the file that had it keeps it, else the first file by name gets it.
    """
    pods: dict[str, Pod] = {}
    problems: dict[str, str] = {}
    taken: dict[str, str] = {}
    for reading in sorted(readings, key=lambda reading: (reading.file not in before, reading.file)):
        pod = reading.pod or before.get(reading.file)
        if reading.problem:
            going_on = f"; {pod.key} goes on as it was" if pod else ""
            problems[reading.file] = f"{reading.problem}{going_on}"
        if pod is None:
            continue
        if pod.key in taken:
            problems[reading.file] = f"{pod.key} is in {taken[pod.key]} already"
            continue
        taken[pod.key] = reading.file
        pods[reading.file] = pod
    return Desired(pods, dict(sorted(problems.items())))


@dataclass(frozen=True, slots=True)
class PodPlan:
    stop: tuple[tuple[str, str], ...]
    """Keys of pods that have to end, each with the reason."""
    start: tuple[Pod, ...]


def plan(observed: Mapping[str, str], desired: Mapping[str, Pod]) -> PodPlan:
    """`observed` holds the digest of every pod that has not ended yet, by key; `desired` is by file."""
    wanted = {pod.key: pod for pod in desired.values()}
    stop = [
        (key, "its manifest changed" if key in wanted else "its manifest is gone")
        for key, digest in sorted(observed.items())
        if key not in wanted or wanted[key].digest != digest
    ]
    return PodPlan(tuple(stop), tuple(pod for key, pod in sorted(wanted.items()) if key not in observed))
