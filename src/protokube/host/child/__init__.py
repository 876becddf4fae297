"""What runs in the killable child of a disk job: it starts in about 30 ms and is alone with the device.

Only the light half of the standard library is imported here, and nothing of ours outside this folder: dataclasses
and subprocess alone would double the start. `run.py` is the program; `protokube.host.jobs` starts it and translates.
"""
