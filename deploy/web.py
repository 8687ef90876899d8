"""A web process as `manage.py up` starts it: the application, its cores, and little for the garbage collector to do."""

from __future__ import annotations

import gc

from django.conf import settings

from deploy.cores import keep_to_share
from deploy.wsgi import application

__all__ = ["application"]

if settings.WEB_PINNED:
    keep_to_share(settings.HOME.run, settings.WEB_WORKERS)
# What is loaded by now stays until the end: no round has to walk through it. A request makes hundreds of objects and
# leaves few circles, so rounds need not come every few requests.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 50)
