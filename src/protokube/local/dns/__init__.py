"""The embedded name server: zones, updates, answers, and forwarding of names that are not the cluster's own.

Not here: which records should be there (`records`).
"""
