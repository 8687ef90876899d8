from __future__ import annotations

from typing import Any

from django.db import migrations

from incidents.encryption import SealedText


def seal_all(apps: Any, _: Any) -> None:
    """What was written in the clear is read as it is, and sealed as it is saved."""
    for row in apps.get_model("delivery", "ContactMethod").objects.all():
        row.save(update_fields=("address", "secret"))


def unseal_all(apps: Any, editor: Any) -> None:
    with editor.connection.cursor() as cursor:
        for row in apps.get_model("delivery", "ContactMethod").objects.all():
            cursor.execute(
                "UPDATE delivery_contactmethod SET address = %s, secret = %s WHERE id = %s",
                (str(row.address), str(row.secret), row.pk),
            )


class Migration(migrations.Migration):
    dependencies = [("delivery", "0003_notifications_ended")]
    operations = [
        migrations.AlterField("contactmethod", "address", SealedText()),
        migrations.AlterField("contactmethod", "secret", SealedText(blank=True, default="")),
        migrations.RunPython(seal_all, unseal_all),
    ]
