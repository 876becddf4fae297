"""Outbound network access of hosts and pods, through slirp4netns in the user's network namespace.

Not here: the switch and its cables (`local.host.network`).
"""
