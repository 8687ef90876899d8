"""Gives each route a name, from what it matches: it means what it meant before."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from incidents.domain.routing.schema import free_name, suggested_name


def name_routes(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    taken: set[str] = set()
    for route in apps.get_model("catalog", "Route").objects.select_related("team").order_by("order"):
        route.name = free_name(suggested_name(route.pattern, route.team.slug, route.order), taken)
        taken.add(route.name)
        route.save(update_fields=["name"])


class Migration(migrations.Migration):
    dependencies = [("catalog", "0006_route_tree")]
    operations = [migrations.RunPython(name_routes, migrations.RunPython.noop)]
