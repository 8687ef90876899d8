from django.db import migrations, models

import incidents.security.encryption


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="DataSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=60, unique=True)),
                ("url", models.TextField()),
                ("external_url", models.TextField(blank=True, default="")),
                ("authorization", incidents.security.encryption.EncryptedText(blank=True, default="")),
            ],
            options={
                "ordering": ("name",),
            },
        ),
    ]
