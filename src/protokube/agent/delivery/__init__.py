"""How a changed configuration reaches this master: which revision it runs, whose turn it is, and the way back.

Not here: the records (`launch.rollout`, `launch.revisions`), and what a revision writes (`agent.controlplane`).
"""
