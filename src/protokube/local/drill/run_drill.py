"""Break something on purpose while somebody writes, watch it heal, and judge.

A drill begins only with a cluster that is ready, so that what it finds is its own doing, and ends with one: what was
frozen or cut off is undone whatever happens. Writing goes on from before the first blow until after the last healing.
"""

from __future__ import annotations

from collections.abc import Callable

from protokube.errors import InvalidRequest, ProtokubeError, TryLater
from protokube.local.drill.api_writing import ApiHand
from protokube.local.drill.ground import Ground, Hand
from protokube.local.drill.judge import judge
from protokube.local.drill.run import Overdue, Run
from protokube.local.drill.scripts import SCRIPTS
from protokube.local.drill.values import Step, Timeline, Verdict
from protokube.local.view.cluster import ClusterView
from protokube.local.view.values import MemberView
from protokube.spec.decode import near

WARM_UP, COOL_DOWN = 0.5, 0.5
"""Seconds of writing before the first blow and after the last milestone."""
FIRST_WRITES = 5
PATIENCE = 5.0
"""Seconds for the cluster to show that it is ready."""


def run_drill(
    name: str, ground: Ground, member: str | None, seconds: float, tell: Callable[[Step], None] = lambda _: None
) -> Verdict:
    """One drill, from a look at whether it may begin to the verdict."""
    before = look_until_ready(ground)
    chosen = choose(before, member)
    with ground.writing(before, chosen.key) as hand:
        run = Run(ground, hand, before, chosen, seconds=seconds, tell=tell)
        warm_up(ground, hand)
        missing: tuple[str, ...] = ()
        try:
            SCRIPTS[name](run)
        except Overdue as overdue:
            missing = overdue.missing
        except ProtokubeError as why:
            if not run.steps:
                raise
            missing = (f"{why.message}: {why.saw}" if why.saw else why.message,)
        ground.sleep(COOL_DOWN)
        log = hand.writer.stop()
        found = read_back(hand)
        return judge(
            Timeline(
                drill=name,
                target=run.target,
                key=chosen.key,
                promises=run.promises,
                steps=tuple(run.steps),
                reached=tuple(run.reached),
                missing=missing,
                began=run.began if run.began is not None else log.began,
                before=before,
                after=ground.look(),
                log=log,
                found=found,
                old=run.old,
                api_log=hand.api.writer.stop() if hand.api else None,
                api_found=read_back(hand.api) if hand.api else None,
            )
        )


def read_back(hand: Hand | ApiHand) -> dict[str, str] | None:
    try:
        return hand.read_back()
    except ProtokubeError:
        return None


def look_until_ready(ground: Ground) -> ClusterView:
    """Nothing is broken that is not whole; a busy machine may take a few looks to answer."""
    end = ground.now() + PATIENCE
    while not (view := ground.look()).ready:
        if ground.now() > end:
            raise TryLater(
                "a drill begins with a cluster that is ready, and this one is not",
                saw=view.lacks[0],
                hint="protokube status --wait",
            )
        ground.sleep(0.2)
    return view


def choose(view: ClusterView, asked: str | None) -> MemberView:
    """The member that was named: `a`, `main/a` or `etcd-a`; the leader of the first etcd cluster if none was."""
    if asked is None:
        key = view.members[0].key
        return next(each for each in view.members if each.key == key and each.leader)
    for each in view.members:
        if asked in (each.member, each.name, each.dns_name, each.member.rpartition("/")[2]):
            return each
    known = [each.member for each in view.members]
    raise InvalidRequest(f"there is no member {asked!r}", saw=", ".join(known), hint=near(asked, known))


def warm_up(ground: Ground, hand: Hand) -> None:
    """Write a little first, so that there is something to lose."""
    ground.sleep(WARM_UP)
    for _ in range(100):
        if sum(each.revision > 0 for each in hand.writer.log().writes) >= FIRST_WRITES:
            return
        ground.sleep(0.1)
    raise TryLater("not even the first writes were acknowledged", hint="protokube status")
