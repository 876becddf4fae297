"""From what objects ask for to the values that each zone should hold. Pure: no clock, no API, no zone access.

Not here: the change from what a zone holds to what it should (`records`), and the confirmation of deletes (`write`).
"""
