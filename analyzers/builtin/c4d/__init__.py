"""Names the rank, NIC side or connection behind a training job that hangs or slows down, from records of collectives.

After C4D (Dong et al., Enhancing Large-Scale AI Training Efficiency: The C4 Solution, HPCA 2025). Records are states of
one rank in one operation; clocks of ranks may differ by seconds, so only durations by one clock are compared.

- Hang: nothing completes for longer than usual. Each blocked rank waits for the members of its communicator that have
  not launched the operation; ranks at the end of these chains that are not blocked themselves are named (`hang`).
  Operations that all have launched and that do not complete are traced to the transfers without progress among those
  that made progress (`hang_transfer`). Different operations or sizes at one sequence number, and rings of waiting, are
  verdicts on the software (`mismatch`).
- Slow communication: delay of each transfer over what its size and class (within a node or not) usually take; median of
  the most recent operations per pair of ranks. Rows that are high name the sending side, columns the receiving side,
  both the NIC, single elements the connection (`delay`). Where a row or a column holds one element only, as in one
  ring, sender, receiver and connection are one ambiguous group.
- Slow computation: the rank that arrives last has the shortest duration. Named is a rank that is late in nearly all of
  the recent operations, by more than a share of the time and than the scatter of the others, unless it was late
  because it waited longer than its peers in other communicators (`arrival`).

Inconclusive while a stall is not longer than stalls that were resolved before, where many ranks stopped together, and
where all are slow alike. There is one score for each kind of finding (`findings.SCORES`).
"""

from analyzers.builtin.c4d.analyzer import ANALYZER

__all__ = ["ANALYZER"]
