"""Boolean baselines: what good and bad paths alone say about the component at fault.

Boolean tomography (Dhamdhere et al., NetDiagnoser, CoNEXT 2007: nobody on a good path), SCORE (Kompella et al.,
NSDI 2005: a large share of bad paths), maximum coverage (Kompella et al., INFOCOM 2007: most bad paths), and
PLL of deTector (Peng et al., USENIX ATC 2017), over one sparse table of paths and components
(`builtin/tomography.py`, `builtin/incidence.py`). A path is bad above `threshold`.

They know no rates: score is None and never `sure`, so an incident needs the finding twice. Ties are broken by
the figures around a component, not by its name, and components that explain the same are one entry. SCORE's
cost is our reading: components plus unexplained paths.
"""

from analyzers.builtin.boolean.analyzer import ANALYZER

__all__ = ["ANALYZER"]
