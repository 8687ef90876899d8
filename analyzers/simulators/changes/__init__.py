"""Metrics of services whose level changes at known moments, beside what looks like a change and is none."""
