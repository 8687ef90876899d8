"""Reports of any period, team and region, and who gets them by mail."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0002_daily"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReportEmail",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("address", models.EmailField(max_length=254)),
                ("state", models.CharField(default="waiting", max_length=8)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("sent_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={
                "ordering": ("-report__end", "address"),
            },
        ),
        migrations.CreateModel(
            name="ProducedReport",
            fields=[
                ("id", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("schedule", models.CharField(max_length=60)),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("body", models.JSONField()),
                ("position", models.CharField(max_length=64)),
            ],
            options={
                "ordering": ("-end", "id"),
            },
        ),
        migrations.CreateModel(
            name="ReportSchedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=60, unique=True)),
                ("title", models.CharField(max_length=120)),
                (
                    "cadence",
                    models.CharField(
                        choices=[("daily", "daily"), ("weekly", "weekly"), ("monthly", "monthly")],
                        max_length=8,
                    ),
                ),
                ("region", models.CharField(blank=True, default="", max_length=200)),
                ("team", models.SlugField(blank=True, default="", max_length=60)),
                ("zone", models.CharField(default="UTC", max_length=64)),
                (
                    "hour",
                    models.PositiveSmallIntegerField(
                        default=0, validators=[django.core.validators.MaxValueValidator(23)]
                    ),
                ),
                ("analyses", models.JSONField(blank=True, default=list)),
                ("enabled", models.BooleanField(default=True)),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("address", models.EmailField(max_length=254)),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ("address",),
            },
        ),
        migrations.AddIndex(
            model_name="producedreport",
            index=models.Index(fields=["schedule", "-end"], name="reports_by_schedule"),
        ),
        migrations.AddField(
            model_name="reportemail",
            name="report",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="emails",
                to="reports.producedreport",
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="schedule",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="subscriptions",
                to="reports.reportschedule",
            ),
        ),
        migrations.AddIndex(
            model_name="reportemail",
            index=models.Index(fields=["state", "next_at"], name="report_emails_due"),
        ),
        migrations.AddConstraint(
            model_name="reportemail",
            constraint=models.UniqueConstraint(fields=("report", "address"), name="one_email_per_report"),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(fields=("schedule", "address"), name="one_subscription"),
        ),
    ]
