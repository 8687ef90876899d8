import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0005_memberships")]

    operations = [
        migrations.CreateModel(
            name="Service",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=60, unique=True)),
                ("name", models.CharField(max_length=120)),
                ("description", models.TextField(blank=True, default="")),
                (
                    "patterns",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200), default=list, size=None
                    ),
                ),
                ("depends_on", models.ManyToManyField(related_name="dependents", to="catalog.service")),
                (
                    "team",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="services",
                        to="catalog.team",
                    ),
                ),
            ],
            options={"ordering": ("slug",)},
        ),
        migrations.AddField("route", "name", models.SlugField(max_length=60, null=True)),
        migrations.AddField(
            "route",
            "parent",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="children",
                to="catalog.route",
            ),
        ),
        migrations.AddField("route", "when", models.JSONField(default=dict)),
        migrations.AddField(
            "route",
            "service",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="routes",
                to="catalog.service",
            ),
        ),
        migrations.AddField("route", "severity", models.CharField(max_length=8, null=True)),
        migrations.AddField("route", "policy", models.CharField(max_length=60, null=True)),
        migrations.AddField("route", "grouping", models.JSONField(null=True)),
        migrations.AlterField("route", "order", models.PositiveIntegerField()),
        migrations.AlterField("route", "pattern", models.CharField(blank=True, default="", max_length=200)),
        migrations.AlterField(
            "route",
            "team",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="routes",
                to="catalog.team",
            ),
        ),
        migrations.AlterModelOptions("route", {"ordering": ("order", "name")}),
    ]
