"""`protokube complete`: expand a spec into the complete configuration; `--why`, `--store`.

Not here: the decisions themselves (`config`).
"""
