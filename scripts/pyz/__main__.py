"""The first thing any Python runs: say in one sentence if it is the wrong one, else start.

This file alone has to parse on every Python that may be called `python3`, or `python`, so it is written
for the oldest of them. Everything after the gate is for Python 3.11.
"""

# ruff: noqa: UP031
import sys


def refusal(version, platform):
    # type: (Sequence[int], str) -> str
    """Why this Python cannot run protokube; empty if it can."""
    if version[:2] >= (3, 11) and platform.startswith("linux"):
        return ""
    seen = "Python %d.%d on %s" % (version[0], version[1], platform)
    return "error: protokube needs Python 3.11 or newer on Linux, and %s is %s" % (sys.executable, seen)


if __name__ == "__main__":
    why = refusal(sys.version_info, sys.platform)
    if why:
        sys.stderr.write(why + "\n")
        sys.exit(4)  # ExitCode.REFUSED: a person has to decide
    from start import start

    start()
