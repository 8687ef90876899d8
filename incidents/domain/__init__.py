"""Rules of incidents: pure functions, no Django, no clock, no ids made here."""
