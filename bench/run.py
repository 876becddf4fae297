"""Everything `make bench` measures. Absolute times belong to the machine; judge by the ratios."""

from __future__ import annotations

import dns_controller
import groups
import local
import rollout
import start
import upgrade


def main() -> int:
    results = [start.main(), groups.main(), dns_controller.main(), local.main(), rollout.main(), upgrade.main()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
