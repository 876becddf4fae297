"""Shared by several commands: options, inputs, progress, the screen, the choice of a cluster.

Not here: anything that only one command needs, and how something is rendered (`cli.render`).
"""
