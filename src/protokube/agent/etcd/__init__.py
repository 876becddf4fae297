"""What the agent asks of a running etcd, and what it keeps in the store about it: leases, quorum, agreement, space.

Not here: the disk under a member (`agent.volume`), and its static pod (`agent.controlplane.etcd_member`).
"""
