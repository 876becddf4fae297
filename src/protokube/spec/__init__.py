"""What the user asks for: read, checked and placed, with nothing decided yet."""
