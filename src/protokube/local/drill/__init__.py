"""Drills: inject one fault while clients write, wait until the cluster recovers, and check the guarantees.

Not here: random faults (`soak/chaos`).
"""
