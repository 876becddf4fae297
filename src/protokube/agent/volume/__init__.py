"""The life cycle of a volume on this machine: claimed, proven, formatted, mounted, identified, fenced, released.

Not here: whether etcd may start on it (`members.start`, pure), and the static pod itself (`agent.controlplane`).
"""
