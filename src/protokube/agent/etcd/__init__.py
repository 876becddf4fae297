"""What the agent reads from and does to a running etcd, and its records in the store: leases, quorum, agreement, space.

Not here: the disk under a member (`agent.volume`), and its static pod (`agent.controlplane.etcd_member`).
"""
