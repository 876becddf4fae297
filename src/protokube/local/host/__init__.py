"""One host: its namespaces, root file system, network link, cgroups, init and units; and finding leftovers of hosts.

Not here: how many hosts there are (`local.cloud.group`), and the real kubelet in one (`local.node`).
"""
