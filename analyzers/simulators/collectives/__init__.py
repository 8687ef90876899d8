"""Training jobs whose ranks record their collective operations."""
