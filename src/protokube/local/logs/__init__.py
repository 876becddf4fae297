"""The logs of a local cluster: which there are, where they lie now, and how they are read and followed.

Not here: how lines are shown (`cli.logs`), and the logs that the agent reads for reasons (`host.podlogs`).
"""
