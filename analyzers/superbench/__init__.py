"""SuperBench's own diagnosis: rule files and baselines, judged as its tool judges them, without running their code."""
