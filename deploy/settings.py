"""Settings, read from the environment. Unset variables have working defaults; malformed ones fail by name."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from deploy import env
from deploy.embedded import Home
from deploy.version import VERSION

BASE_DIR = Path(__file__).resolve().parent.parent

# Where things are ---------------------------------------------------------------------------------
HOME = Home(
    Path(
        env.text(
            "DOSSIER_HOME",
            str(BASE_DIR / ".dossier"),
            "directory for embedded data, logs and keys",
            shown=".dossier/",
        )
    ).absolute()
)
ALLOW_ROOT = env.boolean(
    "DOSSIER_ALLOW_ROOT",
    False,
    "allow root to start `manage.py up` and `run`, which continue as the owner of DOSSIER_HOME",
)
DATABASE_URL = env.text(
    "DATABASE_URL",
    "",
    "address of a Postgres instead of the embedded one, postgresql://user:password@host:port/name",
)
REDIS_URL = env.broker(
    "REDIS_URL",
    "address of a Redis or Valkey instead of the embedded one, redis://host:port/0 or"
    " redis+socket:///path?virtual_host=0",
)
PORT = env.integer("PORT", 8000, "port of the console, the API and the inbound endpoints", low=1, high=65535)
_NEXT = PORT + 1 if PORT < 65535 else PORT - 1
EVENTS_PORT = env.integer(
    "DOSSIER_EVENTS_PORT", _NEXT, "port of live updates (default: PORT + 1)", low=1, high=65535
)
BIND_ADDRESS = env.text("DOSSIER_BIND_ADDRESS", "127.0.0.1", "address that the servers listen on")
PUBLIC_URL = env.address(
    "DOSSIER_PUBLIC_URL",
    f"http://localhost:{PORT}",
    "address of the console for users",
    shown="http://localhost:PORT",
    path=False,
)
EVENTS_URL = env.address(
    "DOSSIER_EVENTS_URL",
    "",
    "address of live updates if a proxy serves them, such as https://dossier.example/events",
)
WEB_WORKERS = env.integer(
    "DOSSIER_WEB_WORKERS",
    2,
    "number of web processes, which serve pages, the API and the inbound endpoints",
    low=1,
    high=256,
)
WEB_THREADS = env.integer(
    "DOSSIER_WEB_THREADS",
    16,
    "threads per web process, each with a database connection",
    low=1,
    high=256,
)
WEB_CPU_AFFINITY = env.boolean(
    "DOSSIER_WEB_CPU_AFFINITY", True, "pin each web process to its share of the cores (Linux)"
)
WEB_MAX_READS = env.integer(
    "DOSSIER_WEB_MAX_READS",
    max(1, WEB_THREADS * 3 // 4),
    "concurrent reads of pages and the API per web process (default: 3/4 of DOSSIER_WEB_THREADS)",
    low=1,
    high=256,
)
BODY_TIMEOUT_SECONDS = env.integer(
    "DOSSIER_BODY_TIMEOUT_SECONDS",
    10,
    "time for the body of a request in seconds, plus one second per 16 KiB received",
    low=1,
    high=3600,
)
INGEST_RATE_PER_KEY = env.integer(
    "DOSSIER_INGEST_RATE_PER_KEY",
    1000,
    "requests per second and key in each web process; bursts up to ten times as many",
    low=1,
)
TASK_WORKERS = env.integer(
    "DOSSIER_TASK_WORKERS", 2, "number of worker processes for analyses and other tasks", low=1, high=256
)
TASK_TIME_LIMIT = env.duration(
    "DOSSIER_TASK_TIME_LIMIT",
    "45m",
    "time limit of a task; a worker process that exceeds it is killed and replaced",
    low="1s",
)
DRAIN_SECONDS = env.integer(
    "DOSSIER_DRAIN_SECONDS",
    1,
    "seconds between /readyz reporting a stop and the end of service; more behind a load balancer",
    high=600,
)
MIGRATE_ON_START = env.boolean(
    "DOSSIER_MIGRATE_ON_START",
    True,
    "apply migrations in `manage.py up`; false: start only on a database already migrated"
    " with `manage.py migrate`",
)
METRICS_TOKEN = env.text(
    "DOSSIER_METRICS_TOKEN",
    "",
    "bearer token required by /metrics; unset: /metrics answers only this machine",
)


def _secret_key() -> tuple[str, bool]:
    """From the environment, else from the file that the first start writes, else for this process alone; and whether it
    is one that others have, too."""
    if given := env.text(
        "DOSSIER_SECRET_KEY",
        "",
        "key for sessions and encryption; unset: generated and stored under DOSSIER_HOME",
    ):
        return given, True
    path = HOME.root / "secret_key"
    return (path.read_text(), True) if path.exists() else (secrets.token_urlsafe(48), False)


SECRET_KEY, SECRET_KEY_IS_STORED = _secret_key()
SECRET_KEY_FALLBACKS = env.words(
    "DOSSIER_SECRET_KEY_FALLBACKS",
    (),
    "earlier values of DOSSIER_SECRET_KEY, for decryption until `manage.py reencrypt` has run",
)
DEBUG = env.boolean("DOSSIER_DEBUG", False, "show tracebacks in the browser; never on a reachable server")
ALLOWED_HOSTS = env.words(
    "DOSSIER_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"), "host names accepted in requests"
)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

# Telemetry ----------------------------------------------------------------------------------------
TELEMETRY_MAX_BODY = env.integer(
    "DOSSIER_TELEMETRY_MAX_BODY",
    64 * 2**20,
    "largest body of a telemetry request as sent, in bytes",
    low=1024,
)
TELEMETRY_MAX_DECODED_BODY = env.integer(
    "DOSSIER_TELEMETRY_MAX_DECODED_BODY",
    64 * 2**20,
    "largest body of a telemetry request after decompression, in bytes",
    low=1024,
)
UPLOAD_MAX_BODY = env.integer(
    "DOSSIER_UPLOAD_MAX_BODY",
    4 * 2**30,
    "largest upload of PyTorch files, in bytes; spooled to disk",
    low=1024,
)
LOG_PART = env.integer(
    "DOSSIER_LOG_PART",
    10_000_000,
    "events per part of the log; applies to new parts",
    low=1000,
)
LOG_HOT = env.integer(
    "DOSSIER_LOG_HOT",
    0,
    "full parts of the log that stay in Postgres; older ones move to `DOSSIER_TELEMETRY_COLD` as Parquet files; 0: all"
    " stay",
)
TELEMETRY_PARTITION_INTERVAL = env.duration(
    "DOSSIER_TELEMETRY_PARTITION_INTERVAL",
    "1h",
    "time span of a partition of the telemetry tables; at least 30 days for kinds with a long retention",
)
TELEMETRY_RETENTION = env.duration(
    "DOSSIER_TELEMETRY_RETENTION", "30d", "retention of telemetry rows; older rows are rejected"
)
TELEMETRY_SPARSE_RETENTION = env.duration(
    "DOSSIER_TELEMETRY_SPARSE_RETENTION",
    "400d",
    "retention of `outage`, `uptime` and reported changes, at least DOSSIER_TELEMETRY_RETENTION",
)
TELEMETRY_COLD = env.text(
    "DOSSIER_TELEMETRY_COLD",
    "",
    "destination of old telemetry as Parquet files: a directory shared by all machines, or a"
    " bucket such as `s3://bucket/prefix?region=eu-west-1`; unset: telemetry stays in"
    " Postgres",
)
TELEMETRY_HOT = env.duration(
    "DOSSIER_TELEMETRY_HOT",
    "2d",
    "age at which telemetry moves to DOSSIER_TELEMETRY_COLD; less than its retention",
    low="1m",
)
TELEMETRY_FUTURE = timedelta(minutes=5)  # how far a sender's clock may be ahead


# Alerts -------------------------------------------------------------------------------------------
ALERT_MAX_BODY = env.integer(
    "DOSSIER_ALERT_MAX_BODY",
    2**26,
    "largest body of an alert request, as sent and after decompression, in bytes",
    low=1024,
)
ALERT_RETENTION = env.duration(
    "DOSSIER_ALERT_RETENTION",
    "30d",
    "retention of alert payloads and receipts; events are never deleted",
)

# Mail ---------------------------------------------------------------------------------------------
INBOUND_EMAIL_PORT = env.integer(
    "DOSSIER_INBOUND_EMAIL_PORT",
    0,
    "port for alerts by mail (SMTP); 0: off",
    high=65535,
)
INBOUND_EMAIL_DOMAIN = env.text(
    "DOSSIER_INBOUND_EMAIL_DOMAIN",
    urlsplit(PUBLIC_URL).hostname or "localhost",
    "domain of the mail addresses of integrations",
    shown="host of DOSSIER_PUBLIC_URL",
)
INBOUND_EMAIL_MAX_BODY = env.integer(
    "DOSSIER_INBOUND_EMAIL_MAX_BODY", 10 * 2**20, "largest mail with its attachments, in bytes", low=1024
)
INBOUND_EMAIL_CERTIFICATE = env.text(
    "DOSSIER_INBOUND_EMAIL_CERTIFICATE", "", "file with the certificate (PEM) for STARTTLS"
)
INBOUND_EMAIL_CERTIFICATE_KEY = env.text(
    "DOSSIER_INBOUND_EMAIL_CERTIFICATE_KEY", "", "file with the key of this certificate, if separate"
)

# OTLP over gRPC -----------------------------------------------------------------------------------
OTLP_GRPC_PORT = env.integer(
    "DOSSIER_OTLP_GRPC_PORT",
    0,
    "port for OTLP over gRPC, usually 4317; 0: off",
    high=65535,
)
OTLP_GRPC_CERTIFICATE = env.text(
    "DOSSIER_OTLP_GRPC_CERTIFICATE",
    "",
    "file with the TLS certificate (PEM) for OTLP over gRPC; unset: no TLS, for use behind a proxy",
)
OTLP_GRPC_CERTIFICATE_KEY = env.text(
    "DOSSIER_OTLP_GRPC_CERTIFICATE_KEY", "", "file with the key of this certificate, if separate"
)

# What goes out ------------------------------------------------------------------------------------
OUTBOUND_ALLOWED_NETWORKS = env.networks(
    "DOSSIER_OUTBOUND_ALLOWED_NETWORKS",
    "internal networks that outbound requests may reach, such as `10.20.0.0/16,fd12::/16`;"
    " public addresses are always allowed",
)

SLACK_API_URL = (
    env.address(
        "DOSSIER_SLACK_API_URL",
        "https://slack.com/api",
        "address of Slack's Web API; different for GovSlack",
    )
    + "/"
)

TWILIO_ACCOUNT_SID = env.text(
    "DOSSIER_TWILIO_ACCOUNT_SID", "", "account at Twilio or a compatible provider, for SMS and voice"
)
TWILIO_AUTH_TOKEN = env.text(
    "DOSSIER_TWILIO_AUTH_TOKEN", "", "token of that account, which also signs its requests to Dossier"
)
TWILIO_FROM_NUMBER = env.text(
    "DOSSIER_TWILIO_FROM_NUMBER", "", "sender number of messages and calls, such as +4930123456"
)
TWILIO_API_URL = env.address(
    "DOSSIER_TWILIO_API_URL",
    "https://api.twilio.com",
    "address of the API; different for a region or another provider",
)
TELEPHONY_IS_SET_UP = bool(TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN and TWILIO_FROM_NUMBER)

# Remediation ------------------------------------------------------------------------------------
REPAIR_PROOF_REQUIRED = env.boolean(
    "DOSSIER_REPAIR_PROOF_REQUIRED",
    False,
    "true: incidents handed to a cluster are resolved only with proof of repair, unless the"
    " hand-over says otherwise",
)

QUESTION_COSTS = env.costs(
    "DOSSIER_QUESTION_COSTS",
    {"probe": (1.0, 0.0), "link_test": (5.0, 5.0), "benchmark": (30.0, 30.0), "drain": (15.0, 30.0)},
    "minutes until the answer, and cost in minutes of an engineer or of lost capacity, of the"
    " measurements that tell suspects apart; a probe takes one minute more per 600 packets",
)

# Runs -------------------------------------------------------------------------------------------
GPUS_PER_NODE = env.integer(
    "DOSSIER_GPUS_PER_NODE", 8, "GPUs per node, for the expected cost of incidents of training jobs", low=1
)
CHECKPOINT_INTERVAL = env.duration(
    "DOSSIER_CHECKPOINT_INTERVAL",
    "1h",
    "interval between checkpoints of training jobs, for the expected cost",
)
JOB_RESTART_TIME = env.duration(
    "DOSSIER_JOB_RESTART_TIME", "15m", "time to restart a training job, for the expected cost"
)
JOB_MIGRATION_TIME = timedelta(
    seconds=env.integer(
        "DOSSIER_JOB_MIGRATION_SECONDS",
        20,
        "downtime of a live migration to standby machines, for the expected cost; 0: not supported",
    )
)

RUN_LEASE_TIMEOUT = env.duration(
    "DOSSIER_RUN_LEASE_TIMEOUT",
    "3m",
    "time limit of a run, after which another worker repeats it; half of it is the time limit"
    " of the analyzer",
)
NOTIFICATION_RETENTION = env.duration(
    "DOSSIER_NOTIFICATION_RETENTION",
    "90d",
    "retention of delivery details of messages after their end; the timeline of incidents keeps the results",
)
RUN_RETENTION = env.duration(
    "DOSSIER_RUN_RETENTION",
    "90d",
    "retention of windows and verdicts of runs after their last use, for repeating a run; the"
    " conclusions stay in the log; at least 1d",
    low="1d",
)

MAY_ANALYZE = "incidents.api.permissions.MayAnalyze"
"""Function that says who may start analyzers over HTTP: roles are known above the layer that runs them."""

# Watched from outside --------------------------------------------------------------------------------
SEAL_FILE = Path(
    env.text(
        "DOSSIER_SEAL_FILE",
        str(HOME.root / "seals.jsonl"),
        "file to which each new seal of the log is appended, preferably on another machine's"
        " disk; `verify_log` compares it with the log",
        shown="DOSSIER_HOME/seals.jsonl",
    )
)
SEAL_RECIPIENTS = env.words(
    "DOSSIER_SEAL_RECIPIENTS",
    (),
    "further recipients of seals: https:// addresses (each seal, as JSON) and mail addresses"
    " (once a day), separated by commas",
)
SEAL_TSA_URL = env.address(
    "DOSSIER_SEAL_TSA_URL",
    "",
    "timestamp authority (RFC 3161) that stamps the newest seal every hour; timestamps are"
    " appended to DOSSIER_SEAL_FILE",
)
SEAL_TSA_CERTIFICATES = env.text(
    "DOSSIER_SEAL_TSA_CERTIFICATES",
    "",
    "PEM file with the root certificates for timestamps; unset: those of `certifi`",
)
DEAD_MAN_URL = env.address(
    "DOSSIER_DEAD_MAN_URL",
    "",
    "address requested every minute while this node is ready and nothing is late; a"
    " monitoring service there alerts when the requests stop",
)

# Django -------------------------------------------------------------------------------------------
# In the database, so that limits of sign-in hold for all web processes together; a table of deploy/migrations.
CACHES = {
    "default": {
        "BACKEND": "deploy.cache.JSONCache",
        "LOCATION": "shared_limits",
        # More are thinned out, so that many made-up names would give a guesser more tries at one.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "frontend",  # before allauth, whose templates it replaces
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "django_celery_beat",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "ingest.log",
    "ingest.telemetry",
    "ingest.topology",
    "ingest.alerts",
    "ingest.api",
    "analyzers.runs",
    "incidents",
    "incidents.teams",
    "incidents.oncall",
    "incidents.incident",
    "incidents.suppression",
    "incidents.scorecards",
    "incidents.remediation",
    "incidents.reports",
    "incidents.webhooks",
    "incidents.chat",
    "incidents.data_sources",
    "incidents.audit",
    "incidents.notifications",
    "incidents.worker",
    "incidents.escalation",
    "incidents.saved_views",
    "incidents.reviews",
    "incidents.status_pages",
    "deploy",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "deploy.middleware.RequestContext",
    "deploy.middleware.SenderEndpoints",
    "deploy.middleware.ContentSecurityPolicy",
    "deploy.middleware.BodyLimit",
    "deploy.middleware.ChangeReceipts",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
ROOT_URLCONF = "deploy.urls"
WSGI_APPLICATION = "deploy.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {"times": "frontend.times"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "deploy.observability.health.for_staff",
                "deploy.observability.health.operator_warnings",
            ],
        },
    }
]

DATABASES = {"default": env.database(DATABASE_URL or HOME.database_url)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = HOME.root / "static"  # filled by `manage.py up`
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "deploy.static.HashedFiles"},
}
WHITENOISE_USE_FINDERS = True  # what nobody has collected is served from where it lies
WHITENOISE_AUTOREFRESH = DEBUG

SESSION_COOKIE_HTTPONLY = True
if PUBLIC_URL.startswith("https://"):
    SESSION_COOKIE_NAME = "__Host-sessionid"  # which no other host of the domain can set
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = None  # each endpoint has its own limit, all else `deploy.middleware.BodyLimit`
DATA_UPLOAD_MAX_NUMBER_FILES = 4096  # a dump of each rank of a job
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"

_MAIL_SERVER = env.mail_server(
    "DOSSIER_EMAIL_URL",
    "mail server for notifications and reports: `smtp://user:password@host:25`, `smtp+tls://` or `smtps://`",
)
EMAIL_IS_SET_UP = bool(_MAIL_SERVER)
EMAIL_HOST = str(_MAIL_SERVER.get("EMAIL_HOST", ""))
EMAIL_PORT = int(_MAIL_SERVER.get("EMAIL_PORT", 25))
EMAIL_HOST_USER = str(_MAIL_SERVER.get("EMAIL_HOST_USER", ""))
EMAIL_HOST_PASSWORD = str(_MAIL_SERVER.get("EMAIL_HOST_PASSWORD", ""))
EMAIL_USE_TLS = bool(_MAIL_SERVER.get("EMAIL_USE_TLS", False))
EMAIL_USE_SSL = bool(_MAIL_SERVER.get("EMAIL_USE_SSL", False))
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.text("DOSSIER_EMAIL_FROM", "dossier@localhost", "sender address of mail")
ACCOUNT_ADAPTER = "deploy.accounts.ClosedSignup"
# Adding an e-mail address of the provider to an account needs the password of the account; a link alone is not enough.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
# A proxy in front speaks TLS and says nothing of it here: addresses given to others follow DOSSIER_PUBLIC_URL.
ACCOUNT_DEFAULT_HTTP_PROTOCOL = urlsplit(PUBLIC_URL).scheme
ALLAUTH_TRUSTED_PROXY_COUNT = env.integer(
    "DOSSIER_TRUSTED_PROXY_COUNT",
    0,
    "number of proxies in front that add to X-Forwarded-For, so that failed sign-ins are"
    " counted per client address",
    high=10,
)

# Second factors and the identity provider ---------------------------------------------------------
MFA_ADAPTER = "deploy.accounts.EncryptedFactors"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Dossier"
MFA_ALLOW_UNVERIFIED_EMAIL = (
    True  # addresses are not verified here: every signed-in user may protect their account
)
OIDC_URL = env.address(
    "DOSSIER_OIDC_URL",
    "",
    "issuer of an OpenID Connect provider for sign-in, such as https://login.example/realms/dc",
)
OIDC_CLIENT_ID = env.text("DOSSIER_OIDC_CLIENT_ID", "", "client id of Dossier at the provider")
OIDC_CLIENT_SECRET = env.text("DOSSIER_OIDC_CLIENT_SECRET", "", "client secret of Dossier at the provider")
OIDC_NAME = env.text(
    "DOSSIER_OIDC_NAME", "your identity provider", "name of the provider on the sign-in page"
)
OIDC_SIGNUP = env.boolean(
    "DOSSIER_OIDC_SIGNUP", True, "create an account at the first sign-in through the provider"
)
OIDC_GROUPS_CLAIM = env.text("DOSSIER_OIDC_GROUPS_CLAIM", "groups", "claim with the groups of a person")
OIDC_GROUP_ROLES = env.group_rules(
    "DOSSIER_OIDC_GROUP_ROLES",
    "roles by group of the provider, such as `dc-storage=storage:responder,dc-admins=staff`",
)


OIDC_PROVIDER = "oidc"
"""Name of the provider in addresses and rows."""


def oidc_apps(url: str, client_id: str, secret: str, name: str) -> dict[str, object]:
    """The provider as allauth wants it; nothing where there is none."""
    if not url:
        return {}
    app = {"provider_id": OIDC_PROVIDER, "name": name, "client_id": client_id, "secret": secret}
    return {
        "openid_connect": {"APPS": [{**app, "settings": {"server_url": url}}], "OAUTH_PKCE_ENABLED": True}
    }


SOCIALACCOUNT_PROVIDERS = oidc_apps(OIDC_URL, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_NAME)
SOCIALACCOUNT_ADAPTER = "deploy.accounts.IdentityProvider"
# A link and no form, which the content security policy would not let lead elsewhere; the callback checks `state`.
SOCIALACCOUNT_LOGIN_ON_GET = True
ACCOUNT_LOGOUT_REDIRECT_URL = "/"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "ingest.api.authentication.KeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["ingest.api.strict_json.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "ingest.api.problem_details.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Dossier",
    "DESCRIPTION": "Telemetry endpoints, the incident API, runs and reports.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": [],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "ingest.api.openapi.telemetry.describe_telemetry",
        "ingest.api.openapi.schema.describe_errors",
        "ingest.api.openapi.alerts.describe_alert_endpoints",
        "incidents.api.alerts.alertmanager_schema.describe_alertmanager",
        "incidents.api.alerts.opsgenie_schema.describe_opsgenie",
        "ingest.api.openapi.generate.add_schemas",
    ],
    "ENUM_NAME_OVERRIDES": {
        "IncidentState": "incidents.domain.values.STATES",
        "RunState": ("queued", "running", "done", "failed"),
    },
}

# Celery -------------------------------------------------------------------------------------------
CELERY_BROKER_URL = REDIS_URL or HOME.broker_url
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = TASK_TIME_LIMIT.total_seconds()
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Whoever sends gives up at once when the broker is away (a tick sends again); without this it would wait 6 s.
CELERY_BROKER_TRANSPORT_OPTIONS = {"max_retries": 1, "interval_start": 0, "interval_step": 0}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "deploy.observability.heartbeats:Scheduler"

# Logs ---------------------------------------------------------------------------------------------
LOG_LEVEL = env.choice("DOSSIER_LOG_LEVEL", "INFO", env.LEVELS, "lowest level that is logged")
LOG_FORMAT = env.choice("DOSSIER_LOG_FORMAT", "json", ("json", "console"), "log format: json or console")
LOGGING_CONFIG = "deploy.observability.logs.configure"
LOGGING = {"level": LOG_LEVEL, "format": LOG_FORMAT}
