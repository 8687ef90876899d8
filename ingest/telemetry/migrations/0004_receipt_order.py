"""An index of receipts by their place in the log; made while receipts are written."""

from django.db import migrations

# A first attempt that was stopped leaves an index that nothing can use.
ORDER = """
CREATE INDEX CONCURRENTLY telemetry_receipt_order ON telemetry_receipt (region, kind, epoch, txid, seq)
    INCLUDE (number, first, last)
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies: list[tuple[str, str]] = [("telemetry", "0003_regions")]
    operations = [
        migrations.RunSQL("DROP INDEX IF EXISTS telemetry_receipt_order"),
        migrations.RunSQL(ORDER),
    ]
