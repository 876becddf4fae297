"""One zone: list, plan, confirm what is to go, apply in batches, and report what became of each name.

Not here: providers of zones (`providers.dns`), and which zones a record belongs to (`decide`).
"""
