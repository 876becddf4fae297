"""What the members of an etcd cluster answered when all of them were asked, as values and as documents.

Not here: who asks them (`etcd`, `agent.publish`), and whether their data agrees (`members.agreement`).
"""
