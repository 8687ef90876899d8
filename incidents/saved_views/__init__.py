"""Views of the inbox that people keep under a name, for themselves or for a team."""
