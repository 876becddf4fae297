"""The way of hosts and pods to the outside, through a process in the user's network.

Not here: the switch and its cables (`local.host.network`).
"""
