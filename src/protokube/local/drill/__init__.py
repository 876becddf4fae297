"""Break something on purpose while a client writes, watch it heal, judge.

Not here: random faults (`soak/chaos`).
"""
