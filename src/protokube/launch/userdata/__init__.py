"""What a new machine starts with: a script that fetches protokube's single file and runs `protokube nodeup`.

Not here: what nodeup is told (`launch.setup`), and what it makes of it (`nodeup`).
"""
