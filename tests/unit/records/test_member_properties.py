"""Whatever the order in which machines read, plan, sleep and write: a name never goes back to a lower epoch."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.providers.dns import Stale
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change
from protokube.records.member import Claim, MemberPlan, Publish, Settled, plan_member, read_claim

NAME = "etcd-a.internal.dev"
MACHINES = 4


@dataclass
class Machine:
    """One that may hold the volume, and that may sleep between any two of its steps."""

    number: int
    epoch: int = 0
    plan: MemberPlan | None = None

    @property
    def id(self) -> str:
        return f"i-{self.number}"

    @property
    def address(self) -> str:
        return f"10.0.0.{self.number + 1}" if self.number % 2 else f"2001:db8::{self.number + 1}"


@dataclass(frozen=True)
class Take:
    """The volume moves to this machine, which raises the epoch."""

    machine: int


@dataclass(frozen=True)
class Read:
    machine: int


@dataclass(frozen=True)
class Write:
    machine: int


NUMBERS = st.integers(0, MACHINES - 1)
STEPS = st.lists(st.one_of(st.builds(Take, NUMBERS), st.builds(Read, NUMBERS), st.builds(Write, NUMBERS)), max_size=40)


def history(steps: list[Take | Read | Write]) -> tuple[list[Claim], list[Machine], MemoryDns]:
    """Every claim the name ever carried, in order."""
    dns, machines = MemoryDns("dev"), [Machine(number) for number in range(MACHINES)]
    claims: list[Claim] = []
    epoch = 0
    for step in steps:
        machine = machines[step.machine]
        match step:
            case Take():
                epoch += 1
                machine.epoch = epoch
            case Read() if machine.epoch:
                machine.plan = plan_member(dns.read([NAME]), NAME, machine.address, machine.epoch, machine.id)
            case Write() if isinstance(machine.plan, Publish):
                write(dns, machine.plan.changes)
                machine.plan = None
        if claim := read_claim(dns.read([NAME]), NAME):
            claims.append(claim)
    return claims, machines, dns


def write(dns: MemoryDns, changes: tuple[Change, ...]) -> None:
    try:
        dns.apply(changes)
    except Stale:
        return


@examples(150)
@given(STEPS)
def test_a_name_never_goes_back_to_a_lower_epoch(steps: list[Take | Read | Write]) -> None:
    claims, _, _ = history(steps)

    epochs = [claim.epoch for claim in claims]
    assert epochs == sorted(epochs)
    assert len({claim.epoch for claim in claims}) == len(set(claims)), "one epoch was claimed by two machines"


@examples(150)
@given(STEPS)
def test_the_address_is_always_that_of_the_claims_holder(steps: list[Take | Read | Write]) -> None:
    claims, machines, dns = history(steps)

    by_id = {machine.id: machine.address for machine in machines}
    addresses = [record.values for record in dns.read([NAME]) if record.type != "TXT"]
    assert addresses == ([(by_id[claims[-1].holder],)] if claims else [])


@examples(100)
@given(STEPS)
def test_once_all_is_quiet_the_last_to_take_the_volume_has_the_name(steps: list[Take | Read | Write]) -> None:
    _, machines, dns = history(steps)
    last = max(machines, key=lambda machine: machine.epoch)
    if not last.epoch:
        return

    for machine in [*machines, last]:
        if machine.epoch:
            plan = plan_member(dns.read([NAME]), NAME, machine.address, machine.epoch, machine.id)
            if isinstance(plan, Publish):
                dns.apply(plan.changes)

    assert read_claim(dns.read([NAME]), NAME) == Claim(epoch=last.epoch, holder=last.id)
    assert plan_member(dns.read([NAME]), NAME, last.address, last.epoch, last.id) == Settled()
