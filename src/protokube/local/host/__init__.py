"""One host: its namespaces, root, cable, control groups, first process and units; and what is left of one.

Not here: how many hosts there are (`local.cloud.group`), and the real kubelet in one (`local.node`).
"""
