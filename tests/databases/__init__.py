"""Databases of tests, of which one serves many."""
