"""Components as people see them: whose they are, how they are, what blames them."""
