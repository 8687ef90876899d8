"""Nodes to validate before the next job, with which benchmarks, and the probability of an incident otherwise.

After the selector of SuperBench (Xiong et al., USENIX ATC 2024). The authors use Cox-Time; their data are not
published. Here: ridge regression of the hazard at landmarks, moments of the past with the covariates of a node known
then, its incident rate and the recency of its last incident, against an incident within `horizon_hours`. A held-out
quarter corrects it (`hazard`). Cox's proportional hazards stated 20 to 40 % too little.

Every verdict carries a trial: learnt on the first three quarters, tried on the rest, by Brier score against the usual
share, reliability by fifths, and concordance (`trial`).

Benchmarks are chosen greedily by the share of past defects that each shows per hour, until the remaining probability
is below `target_probability`, and while the expected incident hours saved exceed the hours taken (`plan`).

A suspect is a forecast: no score, never `sure`, incident of severity info. Inconclusive with fewer than
`min_incidents` incidents, without nodes, or with covariates that determine nothing; a covariate must be known in 80 %
of the intervals and have five incidents. Not considered: that a node passed yesterday, and jobs (a job fails if any
of its nodes does).
"""

from analyzers.builtin.selector.analyzer import ANALYZER

__all__ = ["ANALYZER"]
