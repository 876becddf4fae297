"""What a run is made of: what begins when, one attempt at one task, interruptions, and what survives a kill.

`run` puts it together. Nothing here knows what a task does.
"""
