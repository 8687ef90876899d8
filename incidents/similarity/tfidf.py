"""How alike incidents are: TF-IDF over what they say (`domain.similarity.text`), and the cosine of the angle
between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from incidents.domain.similarity.text import Described, words

LEAST: Final = 0.4
"""What is less alike shares no more than common words."""


class Similarity:
    """TF-IDF over described incidents, each known by an id; of those that are equally like the later wins."""

    def __init__(self, ids: Sequence[UUID], tickets: Sequence[Described]) -> None:
        self._ids = ids
        self._vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True, dtype=np.float32)
        # A vocabulary without a word is refused; an incident without one has nothing to be compared by.
        self._matrix: Any = self._vectorizer.fit_transform(tickets) if any(map(words, tickets)) else None

    def nearest(self, ticket: Described, most: int) -> list[tuple[UUID, float]]:
        """At most so many, each with its cosine, which is at least LEAST."""
        if self._matrix is None:
            return []
        scores = np.round((self._matrix @ self._vectorizer.transform([ticket]).T).toarray().ravel(), 4)
        order = np.lexsort((-np.arange(len(scores)), -scores))[:most]
        return [
            (self._ids[place], round(float(scores[place]), 4)) for place in order if scores[place] >= LEAST
        ]
