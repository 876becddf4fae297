"""From the Kubernetes API to what objects ask for: list, watch, decode, and read annotations.

Not here: which records follow from it (`decide`), and the contents of zones (`write`).
"""
