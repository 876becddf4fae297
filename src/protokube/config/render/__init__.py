"""From decided settings to what is written: flags and configuration files. Pure.

No decision is taken here: those are in the modules of `config`, one for each concern.
"""
