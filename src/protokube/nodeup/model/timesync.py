"""The clock: right before anything that checks certificates, and kept right.

Packages of time services replace each other, so one that is active is kept, whichever it is. In a container the clock
belongs to the host.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.distribution import names as words
from protokube.nodeup.facts import Facts
from protokube.nodeup.values import Command, Packages, Task, Unit

TOLERATED = 30.0
"""Seconds; certificates of ours begin to be valid a day before they are made."""
SYNCHRONIZED = Command(
    name="the clock is synchronized",
    check=("sh", "-c", 'test "$(timedatectl show --property=NTPSynchronized --value)" = yes'),
    run=(
        "sh",
        "-c",
        "for i in $(seq 60); do"
        ' test "$(timedatectl show --property=NTPSynchronized --value)" = yes && exit; sleep 2; done;'
        " echo no time server answered >&2; exit 1",
    ),
    seconds=150.0,
)


def time_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    if not is_managed(setup, facts):
        return
    service = facts.time_service
    brought = [Packages(names=names, held=()) for names in (packages(setup, facts),) if names]
    yield from brought
    for each in brought:
        service = words(facts).time_units[each.names[0]]
    unit = Unit(name=service, enabled=True, running=True, after=tuple(each.key for each in brought))
    yield unit
    if is_wrong(facts) and not facts.image:
        # Only then: a machine without time servers, whose clock is right, must come up too.
        yield Command(
            name=SYNCHRONIZED.name,
            check=SYNCHRONIZED.check,
            run=SYNCHRONIZED.run,
            seconds=SYNCHRONIZED.seconds,
            after=(unit.key,),
        )


def packages(setup: MachineSetup, facts: Facts) -> tuple[str, ...]:
    """The one that the spec names; else none where a service is active, and the usual one where none is."""
    if not is_managed(setup, facts):
        return ()
    asked = [each for each in setup.packages if each in words(facts).time_units]
    return tuple(asked[:1]) or (() if facts.time_service else (words(facts).time,))


def is_managed(setup: MachineSetup, facts: Facts) -> bool:
    return setup.time_sync and not facts.container


def is_wrong(facts: Facts) -> bool:
    """Whether certificates may be judged wrongly; False if nobody knows."""
    return facts.clock_error is not None and abs(facts.clock_error) > TOLERATED
