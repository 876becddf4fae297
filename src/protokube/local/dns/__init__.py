"""The embedded name server: zones, updates, answers, and forwarding of queries for names outside of the cluster.

Not here: which records are wanted (`records`).
"""
