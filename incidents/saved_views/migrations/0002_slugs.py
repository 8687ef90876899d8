import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.utils.text import slugify


def name_views(apps, _):
    """What was shared before has a name to be called by, too."""
    views = apps.get_model("saved", "SavedView")
    taken = set()
    for view in views.objects.filter(team__isnull=False).select_related("team").order_by("removed_at", "pk"):
        wanted = slug = slugify(f"{view.team.slug}-{view.name}")[:70] or "view"
        number = 2
        while slug in taken:
            slug, number = f"{wanted}-{number}", number + 1
        taken.add(slug)
        view.slug = slug
        view.save(update_fields=["slug"])


class Migration(migrations.Migration):
    dependencies = [
        ("saved", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("savedview", "slug", models.SlugField(max_length=80, null=True)),
        migrations.AlterField(
            "savedview",
            "maker",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="saved_views",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunPython(name_views, migrations.RunPython.noop),
        migrations.AddConstraint(
            "savedview",
            models.UniqueConstraint(
                fields=("slug",),
                condition=models.Q(slug__isnull=False, removed_at__isnull=True),
                name="one_view_per_slug",
            ),
        ),
    ]
