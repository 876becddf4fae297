"""One zone: list, plan, confirm removals, apply in batches, and report the outcome of each name.

Not here: providers of zones (`providers.dns`), and which zones a record belongs to (`decide`).
"""
