"""Run one drill: inject a fault while clients write, wait for the recovery, and check the guarantees.

A drill starts only on a ready cluster, so that every finding is caused by the drill. Frozen or disconnected hosts are
always restored, also after an error. Clients write from before the first fault until after the last milestone.
"""

from __future__ import annotations

from collections.abc import Callable

from protokube.errors import ProtokubeError, TryLater
from protokube.local.drill.api_writing import ApiWriteSession
from protokube.local.drill.ground import Ground, WriteSession
from protokube.local.drill.judge import judge
from protokube.local.drill.run import Overdue, Run
from protokube.local.drill.scripts import SCRIPTS
from protokube.local.drill.values import Step, Timeline, Verdict
from protokube.nearest import no_such
from protokube.view.cluster import ClusterView
from protokube.view.values import MemberView

WARM_UP, COOL_DOWN = 0.5, 0.5
"""Seconds of writing before the first fault and after the last milestone."""
FIRST_WRITES = 5
FIRST_ANSWER = 10.0
"""Seconds after the last milestone in which the API has to acknowledge a write, if it did not since the first fault."""
PATIENCE = 5.0
"""Seconds to wait for a ready cluster before the drill."""


def run_drill(
    name: str, ground: Ground, member: str | None, seconds: float, on_step: Callable[[Step], None] = lambda _: None
) -> Verdict:
    """Run one drill: wait for a ready cluster, run the script, and return the verdict."""
    before = look_until_ready(ground)
    chosen = choose(before, member)
    with ground.writing(before, chosen.key) as session:
        run = Run(ground, session, before, chosen, seconds=seconds, on_step=on_step)
        warm_up(ground, session)
        missing: tuple[str, ...] = ()
        try:
            SCRIPTS[name](run)
        except Overdue as overdue:
            missing = overdue.missing
        except ProtokubeError as why:
            if not run.steps:
                raise
            missing = (f"{why.message}: {why.saw}" if why.saw else why.message,)
        cool_down(ground, session, run)
        log = session.writer.stop()
        found = read_back(session)
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
                api_log=session.api.writer.stop() if session.api else None,
                api_found=read_back(session.api) if session.api else None,
            )
        )


def read_back(session: WriteSession | ApiWriteSession) -> dict[str, str] | None:
    try:
        return session.read_back()
    except ProtokubeError:
        return None


def look_until_ready(ground: Ground) -> ClusterView:
    """Wait for a ready cluster; TryLater if it is not. On a busy machine, members may answer only after a few tries."""
    end = ground.now() + PATIENCE
    while not (view := ground.look()).ready:
        if ground.now() > end:
            raise TryLater(
                "a drill needs a ready cluster, and this one is not ready",
                saw=view.lacks[0],
                hint="protokube status --wait",
            )
        ground.sleep(0.2)
    return view


def choose(view: ClusterView, name: str | None) -> MemberView:
    """The named member (`a`, `main/a` or `etcd-a`); without a name, the leader of the first etcd cluster."""
    if name is None:
        key = view.members[0].key
        return next(each for each in view.members if each.key == key and each.leader)
    for each in view.members:
        if name in (each.member, each.name, each.dns_name, each.member.rpartition("/")[2]):
            return each
    also = [each.dns_name for each in view.members] + [each.name for each in view.members]
    raise no_such("member", name, [each.member for each in view.members], also=also)


def warm_up(ground: Ground, session: WriteSession) -> None:
    """Wait for the first acknowledged writes, so that there is something to lose."""
    ground.sleep(WARM_UP)
    for _ in range(100):
        if sum(each.revision > 0 for each in session.writer.log().writes) >= FIRST_WRITES:
            return
        ground.sleep(0.1)
    raise TryLater("not even the first writes were acknowledged", hint="protokube status")


def cool_down(ground: Ground, session: WriteSession, run: Run) -> None:
    """Let clients write after the last milestone. A write to the API may have been on its way for seconds then."""
    ground.sleep(COOL_DOWN)
    end = ground.now() + FIRST_ANSWER
    while session.api and run.began is not None and ground.now() < end:
        if any(each.answered > run.began for each in session.api.writer.log().acknowledged):
            return
        ground.sleep(0.1)
