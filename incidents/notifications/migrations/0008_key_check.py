from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0007_told_when_over"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeyCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.BinaryField()),
            ],
        ),
    ]
