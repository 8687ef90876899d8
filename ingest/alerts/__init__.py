"""Alerts: what monitoring systems say is wrong, each kept once, with every change of it in the log."""
