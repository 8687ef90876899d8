"""A rule may say that incidents go on to the team that is suggested for them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0009_no_tick"),
    ]

    operations = [
        migrations.AddField("route", "follow_suggestion", models.BooleanField(null=True)),
    ]
