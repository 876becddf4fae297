"""`protokube complete`: a spec in, the complete configuration out; `--why`, `--store`.

Not here: the decisions themselves (`config`).
"""
