"""A full etcd under any observation, and any order in which masters, jobs and accidents take their turns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.members.alarms import Alarm
from protokube.members.remedy import Remedy
from protokube.members.space import DAY, FULL, MOST_BEHIND, OLD_ENOUGH, ROOM, SETTLING, is_sound, plan
from protokube.members.space_values import Compact, Decision, Defragment, Disarm, MoveLeader, Reading, Sample, Space
from protokube.members.start_values import Listed

QUOTA = 1000
MEMBERS = (1, 2, 3)
VERSIONS = ("3.4.21", "3.4.23", "3.5.5", "3.5.6", "3.6.1")


def listed(member: int, *, learner: bool = False) -> Listed:
    url = (f"https://{member}",)
    return Listed(id=member, name=f"etcd-{member}", peer_urls=url, client_urls=url, learner=learner)


readings = st.builds(
    Reading,
    leader=st.sampled_from((0, 1, 1, 1, 2)),
    term=st.sampled_from((3, 3, 3, 4)),
    applied=st.sampled_from((5000, 5000, 5000, 1)),
    size=st.integers(0, 1200),
    in_use=st.integers(0, 1200),
    version=st.sampled_from(VERSIONS),
    learner=st.sampled_from((False, False, False, True)),
)
remedies = st.builds(
    Remedy,
    began=st.sampled_from((0.0, DAY, 2 * DAY - 100, 2 * DAY, 3 * DAY)),
    revision=st.integers(0, 50),
    compacted=st.sampled_from((0.0, 2 * DAY - 700, 2 * DAY - 30, 2 * DAY)),
    turn=st.sampled_from((0, 0, *MEMBERS, 9)),
    done=st.sets(st.sampled_from((*MEMBERS, 9))).map(lambda found: tuple(sorted(found))),
    cleared=st.sampled_from((0.0, 0.0, 2 * DAY)),
)
samples = st.lists(st.builds(Sample, st.floats(0, 2000), st.integers(1, 100)), max_size=5).map(tuple)
spaces = st.builds(
    Space,
    members=st.lists(st.booleans(), min_size=1, max_size=3).map(
        lambda voters: tuple(listed(number, learner=not voter) for number, voter in enumerate([True, *voters][:3], 1))
    ),
    readings=st.dictionaries(st.sampled_from(MEMBERS), readings, max_size=3),
    alarms=st.lists(
        st.builds(Alarm, st.sampled_from(MEMBERS), st.sampled_from(("NOSPACE", "NOSPACE", "NOSPACE", "CORRUPT", "X"))),
        max_size=2,
    ).map(tuple),
    quotas=st.just(dict.fromkeys(MEMBERS, QUOTA)),
    own=st.sampled_from(MEMBERS),
    own_free=st.integers(0, 3000),
    may_compact=st.booleans(),
    samples=samples,
    record=st.none() | remedies,
    now=st.just(2 * DAY),
)
calm = st.builds(
    lambda own, in_use, sizes, record, old, may: Space(
        members=tuple(listed(each) for each in MEMBERS),
        readings={
            each: Reading(leader=1, term=3, applied=9, size=size, in_use=in_use, version="3.5.6", learner=False)
            for each, size in zip(MEMBERS, sizes, strict=True)
        },
        alarms=(Alarm(1, "NOSPACE"),), quotas=dict.fromkeys(MEMBERS, QUOTA), own=own, own_free=10_000, may_compact=may,
        samples=old, record=record, now=2 * DAY,
    ),
    st.sampled_from(MEMBERS), st.integers(0, 1100), st.tuples(*[st.integers(0, 1200)] * 3), st.none() | remedies,
    samples, st.booleans(),
)  # fmt: skip
"""Healthy clusters, so that steps are reached often."""


def allowed(space: Space, decision: Decision) -> bool:
    """The rules, written independently: what each step requires."""
    if not isinstance(decision, Compact | Defragment | MoveLeader | Disarm):
        return True
    everybody = {each.id for each in space.members}
    if not everybody <= space.readings.keys() or any(each.name != "NOSPACE" for each in space.alarms):
        return False
    readings = [space.readings[each] for each in everybody]
    leaders = {each.leader for each in space.readings.values()}
    if len(leaders) != 1 or leaders == {0}:
        return False
    if isinstance(decision, Disarm):
        return all(each.size < FULL * QUOTA for each in readings) and space.own in leaders
    healthy = (
        not any([each.learner for each in space.members] + [each.learner for each in readings])
        and len({each.term for each in readings}) == 1
        and max(each.applied for each in readings) - min(each.applied for each in readings) <= MOST_BEHIND
        and all(is_sound(each.version) for each in readings)
    )
    if isinstance(decision, Compact):
        return (
            space.may_compact
            and healthy
            and any(s.age >= OLD_ENOUGH and s.revision >= decision.revision for s in space.samples)
        )
    turns_kept = space.record is None or space.record.turn in (0, decision.member) or space.record.turn not in everybody
    mine = decision.member == space.own and decision.before.turn == space.own and turns_kept
    if isinstance(decision, MoveLeader):
        return healthy and mine and {decision.member} == leaders and decision.target in everybody - leaders
    last = {decision.member} != leaders or everybody == leaders
    return healthy and mine and last and space.own_free >= ROOM * space.readings[decision.member].size


@examples(2000)
@given(spaces | calm)
def test_no_step_is_taken_that_the_rules_forbid(space: Space) -> None:
    decision = plan(space)
    assert allowed(space, decision), decision


@given(calm)
def test_the_leader_is_the_last_that_gets_a_turn(space: Space) -> None:
    decision = plan(space)
    if isinstance(decision, MoveLeader) and not (space.record and space.record.turn == decision.member):
        assert set(decision.before.done) >= {2, 3}


@dataclass
class Cluster:
    """Three members, their masters, and the store: every master plans from what it last saw."""

    size: dict[int, int] = field(default_factory=lambda: dict.fromkeys(MEMBERS, QUOTA))
    in_use: int = QUOTA
    live: int = 100
    leader: int = 1
    term: int = 1
    down: set[int] = field(default_factory=set)
    learner: int = 0
    alarms: tuple[Alarm, ...] = (Alarm(2, "NOSPACE"),)
    record: Remedy | None = None
    now: float = 1.8e9
    busy: set[int] = field(default_factory=set)
    """Members that are being defragmented now."""
    views: dict[int, Space] = field(default_factory=dict)
    jobs: dict[int, Defragment] = field(default_factory=dict)
    """By master (of that member), what its agent waits for."""

    def look(self, own: int) -> None:
        answer = {
            each: Reading(
                leader=self.leader, term=self.term, applied=9, size=self.size[each], in_use=self.in_use,
                version="3.5.6", learner=each == self.learner,
            )
            for each in MEMBERS
            if each not in self.down
        }  # fmt: skip
        members = tuple(listed(each, learner=each == self.learner) for each in MEMBERS)
        self.views[own] = Space(
            members=members, readings=answer, alarms=self.alarms, quotas=dict.fromkeys(MEMBERS, QUOTA), own=own,
            own_free=10_000, may_compact=True, samples=(Sample(700.0, 50),), record=None, now=self.now,
        )  # fmt: skip

    def act(self, own: int) -> None:
        """A round: plan from an old look, but over the record as it is; the write fails if somebody was faster."""
        if own in self.jobs or own not in self.views:
            return
        decision = plan(replace(self.views[own], record=self.record, now=self.now))
        match decision:
            case Compact(before=before, after=after):
                assert before.turn == 0 or before.turn == (self.record or before).turn
                self.record, self.in_use = after, self.live
            case MoveLeader(target=target, before=before):
                self.record, self.leader, self.term = before, target, self.term + 1
            case Defragment(member=member, before=before):
                assert not self.busy - {member}, f"{member} beside {self.busy}"
                assert member == own
                self.record = before
                self.jobs[own] = decision
                self.busy.add(member)
            case Disarm(before=ended):
                self.alarms, self.record = (), ended or self.record

    def finish(self, own: int) -> None:
        job = self.jobs.pop(own, None)
        if own in self.busy:
            self.busy.discard(own)
            self.size[own] = self.in_use
        if job is not None and self.record == job.before:
            self.record = job.after

    def crash(self, own: int) -> None:
        """The agent forgets; what it asked of etcd goes on."""
        self.jobs.pop(own, None)
        self.views.pop(own, None)

    def accident(self, kind: str, member: int) -> None:
        match kind:
            case "down":
                self.down.add(member)
                self.busy.discard(member)
            case "up":
                self.down.discard(member)
            case "leader" if member not in self.down:
                self.leader, self.term = member, self.term + 1
            case "learner":
                self.learner = 0 if self.learner else member
            case "clock":
                self.now += DAY / 3 * member
            case "full" if not self.alarms and not self.busy:
                self.alarms = (Alarm(member, "NOSPACE"),)
                self.size, self.in_use = dict.fromkeys(MEMBERS, QUOTA), QUOTA


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ("look", "act", "look", "act", "finish", "crash", "down", "up", "up", "leader", "learner", "clock", "full")
        ),
        st.sampled_from(MEMBERS),
    ),
    max_size=60,
)


@examples(500)
@given(steps, st.booleans())
@example([("act", 2), ("leader", 2), ("look", 1), ("act", 1)], True)
@example([("act", 2), ("crash", 2), ("clock", 3), ("clock", 3), ("look", 3), ("act", 3)], True)
def test_never_two_members_are_defragmented_at_a_time_whatever_happens(
    steps: list[tuple[str, int]], compacted: bool
) -> None:
    cluster = Cluster()
    if compacted:  # begin where members are defragmented: few histories come so far by chance
        cluster.record = Remedy(began=cluster.now).with_compaction(50, cluster.now - SETTLING)
        cluster.in_use = cluster.live
        for own in MEMBERS:
            cluster.look(own)
    for step, member in steps:
        match step:
            case "look" | "act" | "finish" | "crash":
                getattr(cluster, step)(member)
            case _:
                cluster.accident(step, member)
        assert len(cluster.busy) <= 1


def test_left_in_peace_the_masters_heal_it_in_a_few_rounds() -> None:
    cluster = Cluster()
    for _ in range(12):
        cluster.now += SETTLING
        for own in MEMBERS:
            cluster.look(own)
            cluster.act(own)
            cluster.finish(own)
    assert cluster.alarms == ()
    assert set(cluster.size.values()) == {cluster.live}
    assert cluster.record is not None
    assert set(cluster.record.done) == set(MEMBERS)
