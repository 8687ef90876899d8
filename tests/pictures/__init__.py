"""A picture book of the console: every screen as people meet it, for looking at."""
