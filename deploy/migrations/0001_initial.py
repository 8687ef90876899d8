"""Counters of the sign-in limits, shared by all web processes: the table as `createcachetable` makes it."""

from django.db import migrations

CREATE = """
CREATE TABLE shared_limits (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX shared_limits_expires ON shared_limits (expires);
"""


class Migration(migrations.Migration):
    initial = True
    operations = [migrations.RunSQL(CREATE)]
