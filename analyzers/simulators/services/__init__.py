"""Applications of services that call each other, and what their metrics say."""
