"""Leader election between the replicas of one component."""

from __future__ import annotations

from dataclasses import dataclass

from protokube.spec.fields import duration, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Settings of leader election; in the scheduler's configuration file they have no `leaderElect` prefix."""

    leader_elect: bool | None = setting(flag="leader-elect", file="leaderElection.leaderElect")
    leader_elect_lease_duration: str | None = setting(
        flag="leader-elect-lease-duration", file="leaderElection.leaseDuration", check=duration
    )
    leader_elect_renew_deadline_duration: str | None = setting(
        flag="leader-elect-renew-deadline", file="leaderElection.renewDeadline", check=duration
    )
    leader_elect_resource_lock: str | None = setting(
        flag="leader-elect-resource-lock", file="leaderElection.resourceLock"
    )
    leader_elect_resource_name: str | None = setting(
        flag="leader-elect-resource-name", file="leaderElection.resourceName"
    )
    leader_elect_resource_namespace: str | None = setting(
        flag="leader-elect-resource-namespace", file="leaderElection.resourceNamespace"
    )
    leader_elect_retry_period: str | None = setting(
        flag="leader-elect-retry-period", file="leaderElection.retryPeriod", check=duration
    )
