"""The official conformance suite of Kubernetes on a local cluster: `make conformance`.

    make conformance                                     all parallel tests of the suite
    make conformance PART=api                            those of one part only
    make conformance FOCUS='sig-apps.*Deployment'        by a regular expression over their names
    make conformance PART=api DRILL=kill-master          masters die meanwhile
    make conformance CONFORMANCE="--serial --minutes 90"

Exits with 0 if nothing failed, and with 1 if a test failed or a drill found a broken promise.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from protokube.cli.drill import DRILLS  # noqa: E402
from protokube.errors import ProtokubeError  # noqa: E402
from protokube.signals import ending_like_ctrl_c  # noqa: E402
from soak.budget import Budget, say  # noqa: E402
from soak.conformance.campaign import REPORTS, Options, run  # noqa: E402
from soak.conformance.parts import PARTS, WHOLE  # noqa: E402
from soak.conformance.render import as_data, render  # noqa: E402


def read_arguments(arguments: list[str]) -> tuple[Options, float | None]:
    parser = argparse.ArgumentParser(
        prog="soak/conformance/run.py", description="The official conformance suite of Kubernetes on a local cluster."
    )
    parser.add_argument("--part", choices=sorted(PARTS), help="a named part of the suite")
    parser.add_argument("--focus", metavar="REGEX", help=f"the tests to run, by name ({WHOLE})")
    parser.add_argument("--skip", metavar="REGEX", default="", help="the tests to leave out, by name")
    parser.add_argument("--serial", action="store_true", help="also tests that need the cluster for themselves")
    parser.add_argument("--drill", choices=("", *DRILLS), default="", help="repeat this drill during the run")
    parser.add_argument("--cluster", metavar="NAME", default="", help="an existing local cluster (a new one)")
    parser.add_argument("--kubernetes", metavar="VERSION", help="the version (the newest on this machine)")
    parser.add_argument("--masters", type=int, default=3, help="masters of a new cluster (3)")
    parser.add_argument("--processes", type=int, default=4, help="tests at a time (4)")
    parser.add_argument("--reports", type=Path, default=REPORTS, help="the folder for reports and logs (%(default)s)")
    parser.add_argument("--minutes", type=float, help="stop after this long")
    parsed = vars(parser.parse_args(arguments))
    part, focus, minutes = parsed.pop("part"), parsed.pop("focus"), parsed.pop("minutes")
    if part and focus:
        parser.error("--part and --focus both say which tests: name one of them")
    for name, text in (("--focus", focus or ""), ("--skip", parsed["skip"])):
        try:
            re.compile(text)
        except re.error as why:
            parser.error(f"{name} {text!r} is no regular expression: {why}")
    return Options(focus=PARTS[part] if part else focus or WHOLE, **parsed), minutes


def main(arguments: list[str]) -> int:
    options, minutes = read_arguments(arguments)
    if os.geteuid() != 0:
        say("error: the local cloud needs root")
        return 1
    try:
        with ending_like_ctrl_c():  # take the cluster down also on SIGTERM, as from `timeout`
            result = run(options, Budget(minutes))
    except (AssertionError, ProtokubeError) as why:
        say(f"error: {why}")
        return 1
    except KeyboardInterrupt:
        say("stopped; the cluster is taken down")
        return 130
    report = options.reports / "verdict.json"
    report.write_text(json.dumps(as_data(result.verdict, result.drills), indent=2))
    sys.stdout.write(f"\n{render(result.verdict, result.drills)}\n\n")
    for each in result.broken:
        say(f"BROKEN {each}")
    say(f"everything is in {options.reports}")
    return 1 if result.verdict.failed or result.broken else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
