"""Leader election: whatever is late, lost or frozen, two candidates never lead at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders.examples import examples
from protokube.controllers.candidate import DURATION, Candidate, Lease

NUMBER = st.integers(0, 2)


@dataclass
class Request:
    """A request in flight: sent, perhaps carried out, not yet answered."""

    write: Lease | None
    sent: float
    carried_out: bool = False
    answer: Lease | None = None
    refused: bool = False


class Machine:
    """One candidate with its own clock; it may be frozen between any two of its steps."""

    def __init__(self, name: str, offset: float, speed: float) -> None:
        self.candidate, self.offset, self.speed = Candidate(name), offset, speed
        self.request: Request | None = None
        self.resigned = False

    def clock(self, now: float) -> float:
        return self.offset + now * self.speed


class Server:
    """One Lease; a write must carry its current resourceVersion."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.count = 0

    def carry_out(self, request: Request) -> None:
        request.carried_out = True
        if request.write is not None:
            held = self.lease.version if self.lease else ""
            if held != request.write.version:
                request.refused = True
                return
            self.count += 1
            self.lease = replace(request.write, version=str(self.count))
        request.answer = self.lease


class AnyInterleaving(RuleBasedStateMachine):
    @initialize(
        speeds=st.lists(st.sampled_from([0.97, 1.0, 1.03]), min_size=3, max_size=3),
        offsets=st.lists(st.sampled_from([0.0, -1e6, 1e6]), min_size=3, max_size=3),
    )
    def begin(self, speeds: list[float], offsets: list[float]) -> None:
        self.now = 0.0
        self.server = Server()
        self.machines = [
            Machine(f"m{n}", offset, speed) for n, (offset, speed) in enumerate(zip(offsets, speeds, strict=True))
        ]

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.0, 5.0, 12.9, 13.1, 15.1, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(which=NUMBER)
    def send(self, which: int) -> None:
        machine = self.machines[which]
        if machine.request is not None or machine.resigned:
            return
        now = machine.clock(self.now)
        if machine.candidate.must_look(now):
            machine.request = Request(None, now)
        elif (lease := machine.candidate.lease_to_write(now)) is not None:
            machine.request = Request(lease, now)

    @rule(which=NUMBER)
    def carry_out(self, which: int) -> None:
        request = self.machines[which].request
        if request is not None and not request.carried_out:
            self.server.carry_out(request)

    @rule(which=NUMBER, lost=st.booleans())
    def answer(self, which: int, lost: bool) -> None:
        machine = self.machines[which]
        request, now = machine.request, machine.clock(self.now)
        if request is None or not (request.carried_out or lost):
            return
        machine.request = None
        if request.write is None:
            if not lost:
                machine.candidate.saw(request.answer, now)
                if (lease := machine.candidate.lease_to_write(now)) is not None:
                    machine.request = Request(lease, now)
        elif lost or request.refused:
            machine.candidate.failed()
            if lost and not request.carried_out:
                self.stray = request
        else:
            assert request.answer is not None
            machine.candidate.wrote(request.answer, request.sent)

    stray: Request | None = None
    """A write that its sender gave up, still somewhere in the network."""

    @rule()
    def a_stray_write_arrives(self) -> None:
        if self.stray is not None:
            self.server.carry_out(self.stray)
            self.stray = None

    @rule(which=NUMBER)
    def a_round_in_peace(self, which: int) -> None:
        """A read and a write in immediate succession: otherwise leaders would be rare."""
        for _ in range(2):
            self.send(which)
            self.carry_out(which)
            self.answer(which, lost=False)

    @rule(which=NUMBER)
    def resign(self, which: int) -> None:
        machine = self.machines[which]
        if machine.request is None and (lease := machine.candidate.resign()) is not None:
            self.server.carry_out(Request(lease, machine.clock(self.now)))
            machine.resigned = True

    @rule(which=NUMBER)
    def come_back(self, which: int) -> None:
        machine = self.machines[which]
        if machine.resigned:
            fresh = Machine(f"{machine.candidate.identity}x", machine.offset, machine.speed)
            self.machines[which] = fresh

    @invariant()
    def at_most_one_leads(self) -> None:
        if not hasattr(self, "machines"):
            return
        leaders = [each.candidate.identity for each in self.machines if each.candidate.leading(each.clock(self.now))]
        assert len(leaders) <= 1, leaders

    def teardown(self) -> None:
        """Without faults for a while, any candidate becomes leader."""
        if not hasattr(self, "machines"):
            return
        machine = self.machines[0] = Machine("last", 0.0, 1.0)
        for _ in range(40):
            self.a_round_in_peace(0)
            if machine.candidate.leading(self.now):
                return
            wait = machine.candidate.wait(self.now)
            assert wait > 0
            self.now += wait
        raise AssertionError("nobody leads")


TestAnyInterleaving = AnyInterleaving.TestCase
TestAnyInterleaving.settings = examples(100, stateful_step_count=40)


def a_busy_hour(seed: int) -> tuple[int, list[str]]:
    """Three candidates in normal operation, with delayed and lost responses and with freezes.

    Returns how often the leader changed, and every moment at which two candidates led.
    """
    random = Random(seed)
    server, now, changes, wrong = Server(), 0.0, 0, []
    machines = [Machine(f"m{n}", random.uniform(-1e6, 1e6), random.uniform(0.97, 1.03)) for n in range(3)]
    due = [0.0, 0.0, 0.0]
    leader = ""
    for _ in range(600):
        which = min(range(3), key=due.__getitem__)
        now = max(now, due[which])
        machine = machines[which]
        candidate, request, clock = machine.candidate, machine.request, machine.clock(now)
        if request is None:
            looks = candidate.must_look(clock)
            lease = None if looks else candidate.lease_to_write(clock)
            if looks or lease is not None:
                machine.request = Request(lease, clock)
                pause = random.choice([0.01, 0.5, 3.0])
            else:
                pause = candidate.wait(clock) * random.choice([0.05, 1.0])
        elif not request.carried_out:
            server.carry_out(request)
            pause = random.choice([0.01, 0.5, 3.0])
        else:
            machine.request = None
            lost = random.random() < 0.1
            if request.write is not None and (lost or request.refused):
                candidate.failed()
            elif request.write is not None:
                assert request.answer is not None
                candidate.wrote(request.answer, request.sent)
            elif not lost:
                candidate.saw(request.answer, clock)
                if (lease := candidate.lease_to_write(clock)) is not None:
                    machine.request = Request(lease, clock)
            pause = 0.0 if machine.request else candidate.wait(clock) * random.choice([0.05, 1.0])
        frozen = random.choice([5.0, 12.0, 12.9, 15.0, 60.0]) if random.random() < 0.06 else 0.0
        due[which] = now + pause / machine.speed + frozen
        for moment in (now, min(due) - 1e-6):
            leaders = [each.candidate.identity for each in machines if each.candidate.leading(each.clock(moment))]
            if len(leaders) > 1:
                wrong.append(f"at {moment:.3f} {leaders}")
            if leaders and leaders[0] != leader:
                leader, changes = leaders[0], changes + 1
    return changes, wrong


def test_in_busy_hours_with_freezes_one_leads_at_a_time_and_the_lease_changes_hands() -> None:
    hours = [a_busy_hour(seed) for seed in range(150)]
    assert [wrong for _, wrong in hours if wrong] == []
    assert sum(changes for changes, _ in hours) > 300, "nobody ever took over, so nothing was tried"


def held_by(holder: str, version: str = "1") -> Lease:
    return Lease(holder=holder, duration=DURATION, version=version)


def test_a_leader_that_was_frozen_knows_at_once() -> None:
    candidate = Candidate("me")
    candidate.saw(None, 100.0)
    candidate.wrote(held_by("me"), 100.0)
    assert candidate.leading(112.9)
    assert not candidate.leading(113.0)


def test_another_is_waited_for_by_our_own_clock_from_its_last_sign_of_life() -> None:
    candidate = Candidate("me")
    candidate.saw(held_by("other", "1"), 100.0)
    assert candidate.lease_to_write(114.9) is None
    candidate.saw(held_by("other", "2"), 114.9)
    assert candidate.lease_to_write(129.8) is None
    assert candidate.wait(129.8) < 0.2
    candidate.saw(held_by("other", "2"), 129.95)
    lease = candidate.lease_to_write(129.95)
    assert lease is not None
    assert (lease.version, lease.holder, lease.transitions) == ("2", "me", 1)


def test_a_released_lease_is_taken_at_once() -> None:
    candidate = Candidate("me")
    candidate.saw(held_by("", "7"), 0.0)
    assert candidate.lease_to_write(0.0) == Lease(holder="me", duration=DURATION, transitions=1, version="7")


def test_a_lease_that_somebody_deleted_still_protects_its_holder_from_who_saw_it() -> None:
    candidate = Candidate("me")
    candidate.saw(held_by("other"), 100.0)
    candidate.saw(None, 101.0)
    assert candidate.lease_to_write(115.9) is None
    lease = candidate.lease_to_write(116.0)
    assert lease is not None
    assert lease.version == ""


def test_a_leader_that_sees_another_in_its_place_stops_at_once() -> None:
    candidate = Candidate("me")
    candidate.saw(None, 0.0)
    candidate.wrote(held_by("me"), 0.0)
    candidate.failed()
    assert candidate.leading(1.0), "not knowing is no reason to stop"
    assert candidate.must_look(1.0)
    candidate.saw(held_by("other", "2"), 1.0)
    assert not candidate.leading(1.0)
    assert candidate.resign() is None


def test_who_resigns_does_not_lead_even_before_it_is_written() -> None:
    candidate = Candidate("me")
    candidate.saw(None, 0.0)
    candidate.wrote(held_by("me", "3"), 0.0)
    assert candidate.resign() == Lease(holder="", duration=DURATION, version="3")
    assert not candidate.leading(0.0)
