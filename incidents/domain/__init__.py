"""What an incident is and what may happen to it: pure functions, no Django, no clock, no ids made here."""
