"""From the complete configuration to what one machine is told, and what must exist before it boots.

No machine is made or changed here: the agent, the local cloud, nodeup and clouds each consume this.
"""
