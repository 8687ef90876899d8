"""Lists in pages: `results`, `next`, `previous`, with `limit` rows a page."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination


class Pages(CursorPagination):
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list[Any] | None:
        """A cursor that was made up is no page, whatever it was made up of."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValidationError, ValueError) as error:
            raise NotFound(self.invalid_cursor_message) from error
