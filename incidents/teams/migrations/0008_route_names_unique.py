from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0007_route_names")]

    operations = [
        migrations.AlterField("route", "name", models.SlugField(max_length=60, unique=True)),
    ]
