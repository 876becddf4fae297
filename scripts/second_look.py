"""Run pytest with these arguments, and what failed in a few files once more: alone, in a process of its own.

Who fails there, too, fails. Who passes there is named at the end, since to fail beside others is still a defect, of the
test or of what it tests. What failed must be tests: a file that cannot be read, or workers that found different tests,
ends a run before the others had their turn. See docs/decisions/0016-a-second-look.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MOST_FILES = 3
"""When more files fail, it is not by chance."""
TESTS_FAILED = 1
"""Other codes are not about tests: an interrupt, a wrong option, nothing to run."""
KEPT = Path(".pytest_cache/v/cache/lastfailed")


def main(arguments: Sequence[str]) -> int:
    KEPT.unlink(missing_ok=True)
    code = run(arguments)
    failed = sorted(json.loads(KEPT.read_text())) if KEPT.exists() else []
    files = {each.partition("::")[0] for each in failed}
    if code != TESTS_FAILED or not 0 < len(files) <= MOST_FILES or not all("::" in each for each in failed):
        return code
    print(f"\nA second look at what failed ({len(failed)}), alone:", flush=True)
    code = run([*arguments, "-n", "0", "--last-failed"])
    if code == 0:
        print("UNSTEADY: failed beside others, passed alone. Each is a defect of the test or of protokube:")
        print("\n".join(f"  {each}" for each in failed), flush=True)
    return code


def run(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
