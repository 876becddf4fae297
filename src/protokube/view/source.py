"""Where views come from: a look at the local cloud, or the reports in a state store."""

from __future__ import annotations

from typing import Protocol

from protokube.view.cluster import ClusterView


class Source(Protocol):
    """Can be looked at again and again."""

    def look(self) -> ClusterView:
        """The cluster as it is seen now. What cannot be seen is absent from the view, with a note."""
