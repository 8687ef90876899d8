from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from incidents.teams import defaults


def add_teams_and_routes(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    team_model, route_model = apps.get_model("catalog", "Team"), apps.get_model("catalog", "Route")
    teams = {
        slug: team_model.objects.create(
            slug=slug, name=name, description=description, is_default=slug == defaults.DEFAULT_TEAM
        )
        for slug, name, description in defaults.TEAMS
    }
    for order, (pattern, team) in enumerate(defaults.ROUTES, start=1):
        route_model.objects.create(order=order, pattern=pattern, team=teams[team])


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]
    operations = [migrations.RunPython(add_teams_and_routes, migrations.RunPython.noop)]
