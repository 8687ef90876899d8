"""The pages as the browser tests serve them: without a banner for followers, which run only when a test lets them."""

from math import inf

from deploy import web  # sets Django up
from deploy.observability import health

application = web.application
health.LONGEST_LAG = inf
