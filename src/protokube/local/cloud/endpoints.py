"""Where Services are served now, asked of the API with the credentials of the user who ran `up`.

Asked at most once a second for each Service; while no API server answers, the last answer holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from protokube.errors import Refused, TryLater
from protokube.kube.services import Address, ServiceName, ask
from protokube.local.base import client_files
from protokube.local.base.paths import Paths

FRESH_SECONDS, ASK_SECONDS = 1.0, 3.0


class Endpoints:
    """The last answers, and when each was given."""

    def __init__(self, paths: Paths, fresh: float = FRESH_SECONDS) -> None:
        self._paths, self.fresh = paths, fresh
        self._lock = threading.Lock()
        self._known: dict[ServiceName, tuple[float, Sequence[Address]]] = {}

    def find(self, name: ServiceName) -> Sequence[Address]:
        """In a thread. Who asks at the same time waits for one answer; an API that is away costs its patience once."""
        with self._lock:
            at, known = self._known.get(name, (0.0, ()))
            if at and time.monotonic() - at < self.fresh:
                return known
            try:
                known = self._ask(name)
            except TryLater:
                if not at:
                    raise
            self._known[name] = time.monotonic(), known
            return known

    def _ask(self, name: ServiceName) -> Sequence[Address]:
        api = client_files.kube_api(self._paths, ASK_SECONDS)
        if api is None:
            raise Refused(f"{self._paths.cluster} has no Kubernetes", code="needs-kubernetes")
        try:
            return ask(api, name)
        finally:
            api.close()
