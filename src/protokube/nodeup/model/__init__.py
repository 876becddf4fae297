"""From a machine's setup and its facts to the tasks that make it a member of its cluster; one module per concern.

Pure: no module here reads the machine or changes it.
"""
