"""From what objects ask for to the values each zone is to hold. Pure: no clock, no API, no zone is asked.

Not here: the change from what a zone holds to what it should (`records`), and the confirmation of deletes (`write`).
"""
