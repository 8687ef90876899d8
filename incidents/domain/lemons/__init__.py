"""Lemons: parts, batches and firmware that fail more than their peers. Pure; the statistics of one fleet.

A part's failures are compared with those that its peers would have had over the same exposure (attempts of jobs of the
same size, hours in use or days in service). Healthy peers differ too, so the null distribution is a negative binomial
whose spread is learnt from the fleet; the upper tenth of the fleet is left out of the fit (`rates`). Attempts of jobs
are shared by nodes: the strongest suspect is taken out with its attempts before the others are judged (`attempts`). The
p-values of one part's sources are combined by Bonferroni's rule, and Benjamini and Hochberg (1995) bound the share of
false lemons (`score`).

Sources: Spiegelhalter 2005 (over-dispersed indicators, funnel plots), Jones, Ohlssen and Spiegelhalter 2008 (the false
discovery rate when comparing providers), Efron 2004 (empirical null), Kokolis et al. 2025 (lemon nodes).
"""
