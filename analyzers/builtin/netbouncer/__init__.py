"""NetBouncer (Tan et al., NSDI 2019): success probabilities of links and devices from probes whose path is known.

First the devices that no clean path crosses, then the links by coordinate descent; what is flagged is fitted again by
its binomial likelihood, because the penalty that makes the descent decide also biases what it says. The prober is a
suspect like any link, and what paths lose in bursts of their own bounds what a component is believed to lose.
"""

from analyzers.builtin.netbouncer.analyzer import ANALYZER

__all__ = ["ANALYZER"]
