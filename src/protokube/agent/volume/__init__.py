"""One volume's life on this machine: claimed, proven, formatted, mounted, identified, fenced, and given up.

Not here: whether etcd may start on it (`members.start`, pure), and the static pod itself (`agent.controlplane`).
"""
