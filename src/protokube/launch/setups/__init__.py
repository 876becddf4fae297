"""The parts of a machine's setup: its values and their wire format, checks, and what hooks and the runtime become.

`launch.setup` and `launch.derive_setup` are the way in.
"""
