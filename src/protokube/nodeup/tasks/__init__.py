"""The kinds of tasks: for each one module that reads the fact, compares it with what is wanted, and makes it true.

Each module has two functions over one kind of value. `look(wanted, machine)` changes nothing and returns what differs:
nothing if all is as wanted, Refused with the reason where it must not or cannot be made so. `apply(wanted, changes,
machine, say)` makes it true, in steps that may be killed anywhere: the next look sees what is left to do. After it the
runner looks again, so a task that reports success and changed nothing is found.
What should be true of a machine is decided in `model`, in which order in `order`; no task calls another one.
"""
