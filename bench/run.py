"""Everything `make bench` measures. Absolute times belong to the machine; judge by the ratios."""

from __future__ import annotations

import dns_controller
import first_run
import groups
import local
import rollout
import start
import upgrade


def main() -> int:
    measures = (start, groups, dns_controller, local, first_run, rollout, upgrade)
    results = [each.main() for each in measures]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
