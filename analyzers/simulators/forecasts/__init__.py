"""Simulated worlds of what is to come."""
