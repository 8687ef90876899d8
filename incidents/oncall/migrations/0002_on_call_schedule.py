from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("oncall", "0001_initial"),)
    operations = (migrations.RenameModel("Schedule", "OnCallSchedule"),)
