"""Render what `drill watch` saw, as text and as data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protokube.errors import ExitCode

if TYPE_CHECKING:
    from protokube.local.drill.values import Step
    from protokube.view.recovery import Recovery


def outcome(recovery: Recovery) -> ExitCode:
    if recovery.broken:
        return ExitCode.REFUSED
    return ExitCode.TRY_LATER if recovery.missing else ExitCode.OK


def render_recovery(recovery: Recovery) -> list[str]:
    lines = [f"watch: {recovery.before.cluster}"]
    if recovery.losses:
        lines += ["lost:", *(f"  {each}" for each in recovery.losses)]
    if recovery.broken:
        lines += ["broken promises:", *(f"  {each}" for each in recovery.broken)]
    if recovery.missing:
        lines += ["still waited for when the time was up:", *(f"  {each}" for each in recovery.missing)]
    if recovery.seconds is not None:
        late = "; a store shows changes up to a minute late" if recovery.before.source else ""
        lines.append(f"everything was ready again {recovery.seconds:.1f} s after the first loss was seen{late}")
    if outcome(recovery) is ExitCode.OK:
        lines.append("good: the members are the same, and no volume went back to an older epoch")
    return lines


def recovery_tree(recovery: Recovery, steps: Sequence[Step]) -> dict[str, Any]:
    return {
        "drill": "watch",
        "cluster": recovery.before.cluster,
        "store": recovery.before.source,
        "good": outcome(recovery) is ExitCode.OK,
        "lost": list(recovery.losses),
        "broken": list(recovery.broken),
        "waitingFor": list(recovery.missing),
        "recoveredAfter": None if recovery.seconds is None else round(recovery.seconds, 3),
        "steps": [{"seconds": round(each.at, 3), "text": each.text} for each in steps],
    }
