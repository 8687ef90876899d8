"""Settings of the commands that work on files: no database, no environment, and little to import."""

SECRET_KEY = "nothing is signed offline"
INSTALLED_APPS = ["analyzers.runs.management.apps.OfflineConfig", "incidents.remediation"]
DATABASES: dict[str, dict[str, str]] = {}
LOGGING_CONFIG = None
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
