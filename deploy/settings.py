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
            "where embedded data, logs and keys live",
            shown=".dossier/",
        )
    ).absolute()
)
ALLOW_ROOT = env.boolean(
    "DOSSIER_ALLOW_ROOT",
    False,
    "let root start `manage.py up` and `run`; they go on as the owner of DOSSIER_HOME",
)
DATABASE_URL = env.text(
    "DATABASE_URL",
    "",
    "a Postgres to use instead of the embedded one, postgresql://user:password@host:port/name",
)
REDIS_URL = env.broker(
    "REDIS_URL",
    "a Redis or Valkey to use instead of the embedded one, redis://host:port/0 or redis+socket:///path?virtual_host=0",
)
PORT = env.integer("PORT", 8000, "port of the console, the API and the endpoints", low=1, high=65535)
_NEXT = PORT + 1 if PORT < 65535 else PORT - 1
EVENTS_PORT = env.integer(
    "DOSSIER_EVENTS_PORT", _NEXT, "port of live updates (default: PORT + 1)", low=1, high=65535
)
BIND_ADDRESS = env.text("DOSSIER_BIND_ADDRESS", "127.0.0.1", "address that the servers listen on")
PUBLIC_URL = env.address(
    "DOSSIER_PUBLIC_URL",
    f"http://localhost:{PORT}",
    "the address that people reach the console at",
    shown="http://localhost:PORT",
    path=False,
)
EVENTS_URL = env.address(
    "DOSSIER_EVENTS_URL",
    "",
    "the address of live updates where a proxy serves them, say https://dossier.example/events",
)
WEB_WORKERS = env.integer(
    "DOSSIER_WEB_WORKERS", 2, "processes that serve pages, the API and the endpoints", low=1, high=256
)
WEB_THREADS = env.integer(
    "DOSSIER_WEB_THREADS",
    16,
    "threads, each with a database connection, in each of those processes",
    low=1,
    high=256,
)
WEB_CPU_AFFINITY = env.boolean(
    "DOSSIER_WEB_CPU_AFFINITY", True, "each of those keeps to its share of the cores (Linux)"
)
WEB_MAX_READS = env.integer(
    "DOSSIER_WEB_MAX_READS",
    max(1, WEB_THREADS * 3 // 4),
    "reads of pages and the API at the same time in each of those processes (default: 3/4 of DOSSIER_WEB_THREADS)",
    low=1,
    high=256,
)
BODY_TIMEOUT_SECONDS = env.integer(
    "DOSSIER_BODY_TIMEOUT_SECONDS",
    10,
    "seconds that a sender has for the body of a request; one more for each 16 KiB that came",
    low=1,
    high=3600,
)
INGEST_RATE_PER_KEY = env.integer(
    "DOSSIER_INGEST_RATE_PER_KEY",
    1000,
    "requests a second that one key may send to the endpoints of each of those processes; ten times as many at once",
    low=1,
)
TASK_WORKERS = env.integer(
    "DOSSIER_TASK_WORKERS", 2, "processes that run analyses and other tasks", low=1, high=256
)
TASK_TIME_LIMIT = env.duration(
    "DOSSIER_TASK_TIME_LIMIT",
    "45m",
    "how long a task may run; after it the process of the worker that runs it is killed and replaced",
    low="1s",
)
DRAIN_SECONDS = env.integer(
    "DOSSIER_DRAIN_SECONDS",
    1,
    "seconds for which /readyz says that this node stops before it takes no more requests; more behind a load balancer",
    high=600,
)
MIGRATE_ON_START = env.boolean(
    "DOSSIER_MIGRATE_ON_START",
    True,
    "let `manage.py up` apply migrations; false: it starts only on a database that `manage.py migrate` has migrated",
)
METRICS_TOKEN = env.text(
    "DOSSIER_METRICS_TOKEN", "", "a bearer token that /metrics asks for; unset, it answers this machine only"
)


def _secret_key() -> tuple[str, bool]:
    """From the environment, else from the file that the first start writes, else for this process alone; and whether it
    is one that others have, too."""
    if given := env.text(
        "DOSSIER_SECRET_KEY", "", "signs sessions; made and kept under DOSSIER_HOME when unset"
    ):
        return given, True
    path = HOME.root / "secret_key"
    return (path.read_text(), True) if path.exists() else (secrets.token_urlsafe(48), False)


SECRET_KEY, SECRET_KEY_IS_STORED = _secret_key()
SECRET_KEY_FALLBACKS = env.words(
    "DOSSIER_SECRET_KEY_FALLBACKS",
    (),
    "earlier ones, that still open what they sealed until manage.py reencrypt has run",
)
DEBUG = env.boolean("DOSSIER_DEBUG", False, "show tracebacks in the browser; never where others can reach it")
ALLOWED_HOSTS = env.words(
    "DOSSIER_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"), "host names that requests may carry"
)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

# Telemetry ----------------------------------------------------------------------------------------
TELEMETRY_MAX_BODY = env.integer(
    "DOSSIER_TELEMETRY_MAX_BODY", 64 * 2**20, "largest body of a telemetry request as sent, bytes", low=1024
)
TELEMETRY_MAX_DECODED_BODY = env.integer(
    "DOSSIER_TELEMETRY_MAX_DECODED_BODY", 64 * 2**20, "largest body after decompression, bytes", low=1024
)
UPLOAD_MAX_BODY = env.integer(
    "DOSSIER_UPLOAD_MAX_BODY",
    4 * 2**30,
    "largest request with files of PyTorch, bytes; spooled to disk",
    low=1024,
)
LOG_PART = env.integer(
    "DOSSIER_LOG_PART",
    10_000_000,
    "events of one part of the log; concerns parts that are made from now on",
    low=1000,
)
TELEMETRY_PARTITION_INTERVAL = env.duration(
    "DOSSIER_TELEMETRY_PARTITION_INTERVAL", "1h", "span of one partition of a telemetry table"
)
TELEMETRY_RETENTION = env.duration(
    "DOSSIER_TELEMETRY_RETENTION", "30d", "how long telemetry rows are kept; older rows are refused"
)
TELEMETRY_SPARSE_RETENTION = env.duration(
    "DOSSIER_TELEMETRY_SPARSE_RETENTION",
    "400d",
    "the same for `outage`, `uptime` and reported changes, which are few and asked for by the month; never less",
)
TELEMETRY_COLD = env.text(
    "DOSSIER_TELEMETRY_COLD",
    "",
    "where old telemetry moves to as Parquet files: a directory that all machines share, or a bucket such as"
    " `s3://bucket/prefix?region=eu-west-1`; unset, it stays in Postgres",
)
TELEMETRY_HOT = env.duration(
    "DOSSIER_TELEMETRY_HOT", "2d", "age at which telemetry moves there; less than its retention", low="1h"
)
TELEMETRY_FUTURE = timedelta(minutes=5)  # how far a sender's clock may be ahead


# Alerts -------------------------------------------------------------------------------------------
ALERT_MAX_BODY = env.integer(
    "DOSSIER_ALERT_MAX_BODY",
    2**26,
    "largest body of an alert endpoint, as sent and after decompression, bytes",
    low=1024,
)
ALERT_RETENTION = env.duration(
    "DOSSIER_ALERT_RETENTION",
    "30d",
    "how long payloads of alerts and their receipts are kept; events stay for ever",
)

# Mail ---------------------------------------------------------------------------------------------
INBOUND_EMAIL_PORT = env.integer(
    "DOSSIER_INBOUND_EMAIL_PORT",
    0,
    "port of the endpoint for alerts by mail (SMTP); 0: that endpoint is closed",
    high=65535,
)
INBOUND_EMAIL_DOMAIN = env.text(
    "DOSSIER_INBOUND_EMAIL_DOMAIN",
    urlsplit(PUBLIC_URL).hostname or "localhost",
    "what stands behind the @ in addresses of integrations",
    shown="host of DOSSIER_PUBLIC_URL",
)
INBOUND_EMAIL_MAX_BODY = env.integer(
    "DOSSIER_INBOUND_EMAIL_MAX_BODY", 10 * 2**20, "largest mail with its attachments, bytes", low=1024
)
INBOUND_EMAIL_CERTIFICATE = env.text(
    "DOSSIER_INBOUND_EMAIL_CERTIFICATE", "", "file with the certificate (PEM) for STARTTLS"
)
INBOUND_EMAIL_CERTIFICATE_KEY = env.text(
    "DOSSIER_INBOUND_EMAIL_CERTIFICATE_KEY", "", "file with its key, where that is another file"
)

# OTLP over gRPC -----------------------------------------------------------------------------------
OTLP_GRPC_PORT = env.integer(
    "DOSSIER_OTLP_GRPC_PORT",
    0,
    "port of the endpoint for OTLP over gRPC, usually 4317; 0: that endpoint is closed",
    high=65535,
)
OTLP_GRPC_CERTIFICATE = env.text(
    "DOSSIER_OTLP_GRPC_CERTIFICATE",
    "",
    "file with its certificate (PEM); without it a proxy in front does TLS",
)
OTLP_GRPC_CERTIFICATE_KEY = env.text(
    "DOSSIER_OTLP_GRPC_CERTIFICATE_KEY", "", "file with the certificate's key, where that is another file"
)

# What goes out ------------------------------------------------------------------------------------
OUTBOUND_ALLOWED_NETWORKS = env.networks(
    "DOSSIER_OUTBOUND_ALLOWED_NETWORKS",
    "networks of the house that webhooks may be sent to, say `10.20.0.0/16,fd12::/16`; public addresses always may",
)

SLACK_API_URL = (
    env.address(
        "DOSSIER_SLACK_API_URL",
        "https://slack.com/api",
        "address of Slack's Web API; another one for GovSlack",
    )
    + "/"
)

TWILIO_ACCOUNT_SID = env.text(
    "DOSSIER_TWILIO_ACCOUNT_SID", "", "account at Twilio, or at a provider with its API, for SMS and voice"
)
TWILIO_AUTH_TOKEN = env.text(
    "DOSSIER_TWILIO_AUTH_TOKEN", "", "token of that account; its requests to Dossier are signed with it"
)
TWILIO_FROM_NUMBER = env.text(
    "DOSSIER_TWILIO_FROM_NUMBER", "", "number that messages and calls come from, such as +4930123456"
)
TWILIO_API_URL = env.address(
    "DOSSIER_TWILIO_API_URL",
    "https://api.twilio.com",
    "address of the API; another one for a region or another provider",
)
TELEPHONY_IS_SET_UP = bool(TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN and TWILIO_FROM_NUMBER)

# Remediation ------------------------------------------------------------------------------------
REPAIR_PROOF_REQUIRED = env.boolean(
    "DOSSIER_REPAIR_PROOF_REQUIRED",
    False,
    "true: an incident that is handed to the cluster is resolved only once the repair is proved, unless the hand-over "
    "says otherwise",
)

QUESTION_COSTS = env.costs(
    "DOSSIER_QUESTION_COSTS",
    {"probe": (1.0, 0.0), "link_test": (5.0, 5.0), "benchmark": (30.0, 30.0), "drain": (15.0, 30.0)},
    "minutes until the answer and cost, in minutes of an engineer or of lost capacity, of the measurements that tell "
    "suspects apart; a probe takes a minute more for each 600 packets",
)

# Runs -------------------------------------------------------------------------------------------
GPUS_PER_NODE = env.integer(
    "DOSSIER_GPUS_PER_NODE", 8, "GPUs of a node, for the expected cost of incidents of training jobs", low=1
)
CHECKPOINT_INTERVAL = env.duration(
    "DOSSIER_CHECKPOINT_INTERVAL", "1h", "how often training jobs write a checkpoint, for the same"
)
JOB_RESTART_TIME = env.duration(
    "DOSSIER_JOB_RESTART_TIME", "15m", "how long a training job takes to start again, for the same"
)
JOB_MIGRATION_TIME = timedelta(
    seconds=env.integer(
        "DOSSIER_JOB_MIGRATION_SECONDS",
        20,
        "downtime of a live migration to standby machines, for the same; 0: the framework cannot",
    )
)

RUN_LEASE_TIMEOUT = env.duration(
    "DOSSIER_RUN_LEASE_TIMEOUT",
    "3m",
    "how long a worker may take over one run before another takes it up; half of it is the analyzer's time",
)
NOTIFICATION_RETENTION = env.duration(
    "DOSSIER_NOTIFICATION_RETENTION",
    "90d",
    "how long it is kept by which way each message went, once it is over; what incidents tell of it stays for ever",
)
RUN_RETENTION = env.duration(
    "DOSSIER_RUN_RETENTION",
    "90d",
    "how long windows and verdicts that runs keep stay after their last use, so that a run can be done again; "
    "what was concluded is in the log and stays; at least 1d",
    low="1d",
)

MAY_ANALYZE = "incidents.api.permissions.MayAnalyze"
"""Function that says who may start analyzers over HTTP: roles are known above the layer that runs them."""

# Watched from outside --------------------------------------------------------------------------------
SEAL_FILE = Path(
    env.text(
        "DOSSIER_SEAL_FILE",
        str(HOME.root / "seals.jsonl"),
        "where each newest seal of the log is noted, better on another machine's disk; `verify_log` compares",
        shown="DOSSIER_HOME/seals.jsonl",
    )
)
SEAL_RECIPIENTS = env.words(
    "DOSSIER_SEAL_RECIPIENTS",
    (),
    "where else they go: https:// addresses (each seal, as JSON) and mail addresses (once a day), separated by commas",
)
SEAL_TSA_URL = env.address(
    "DOSSIER_SEAL_TSA_URL",
    "",
    "a timestamp authority (RFC 3161), asked every hour about the newest seal; its answers stand in DOSSIER_SEAL_FILE",
)
SEAL_TSA_CERTIFICATES = env.text(
    "DOSSIER_SEAL_TSA_CERTIFICATES",
    "",
    "PEM file of the roots that timestamps are checked against; unset: the public ones of `certifi`",
)
DEAD_MAN_URL = env.address(
    "DOSSIER_DEAD_MAN_URL",
    "",
    "asked every minute while this node is ready and nothing late; a service that listens there tells of the silence",
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
    "the mail server that reports are sent through: `smtp://user:password@host:25`, `smtp+tls://` or `smtps://`",
)
EMAIL_IS_SET_UP = bool(_MAIL_SERVER)
EMAIL_HOST = str(_MAIL_SERVER.get("EMAIL_HOST", ""))
EMAIL_PORT = int(_MAIL_SERVER.get("EMAIL_PORT", 25))
EMAIL_HOST_USER = str(_MAIL_SERVER.get("EMAIL_HOST_USER", ""))
EMAIL_HOST_PASSWORD = str(_MAIL_SERVER.get("EMAIL_HOST_PASSWORD", ""))
EMAIL_USE_TLS = bool(_MAIL_SERVER.get("EMAIL_USE_TLS", False))
EMAIL_USE_SSL = bool(_MAIL_SERVER.get("EMAIL_USE_SSL", False))
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.text("DOSSIER_EMAIL_FROM", "dossier@localhost", "the sender of those mails")
ACCOUNT_ADAPTER = "deploy.accounts.ClosedSignup"
# An address of somebody at the provider is added to an account by whoever knows its password, and by no link alone.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
# A proxy in front speaks TLS and says nothing of it here: addresses given to others follow DOSSIER_PUBLIC_URL.
ACCOUNT_DEFAULT_HTTP_PROTOCOL = urlsplit(PUBLIC_URL).scheme
ALLAUTH_TRUSTED_PROXY_COUNT = env.integer(
    "DOSSIER_TRUSTED_PROXY_COUNT",
    0,
    "how many proxies in front add to X-Forwarded-For, so that wrong passwords are counted for each address and not "
    "for the proxy's",
    high=10,
)

# Second factors and the identity provider ---------------------------------------------------------
MFA_ADAPTER = "deploy.accounts.EncryptedFactors"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Dossier"
MFA_ALLOW_UNVERIFIED_EMAIL = (
    True  # addresses are not verified here: whoever is signed in may protect their account
)
OIDC_URL = env.address(
    "DOSSIER_OIDC_URL",
    "",
    "an OpenID Connect provider to sign in through: its issuer, https://login.example/realms/dc",
)
OIDC_CLIENT_ID = env.text("DOSSIER_OIDC_CLIENT_ID", "", "how Dossier is called there")
OIDC_CLIENT_SECRET = env.text("DOSSIER_OIDC_CLIENT_SECRET", "", "its secret there")
OIDC_NAME = env.text(
    "DOSSIER_OIDC_NAME", "your identity provider", "what the sign-in page calls the provider"
)
OIDC_SIGNUP = env.boolean(
    "DOSSIER_OIDC_SIGNUP", True, "create an account on the first sign-in through the identity provider"
)
OIDC_GROUPS_CLAIM = env.text("DOSSIER_OIDC_GROUPS_CLAIM", "groups", "the claim that lists somebody's groups")
OIDC_GROUP_ROLES = env.group_rules(
    "DOSSIER_OIDC_GROUP_ROLES",
    "what groups there mean here, as `dc-storage=storage:responder,dc-admins=staff`",
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
LOG_LEVEL = env.choice("DOSSIER_LOG_LEVEL", "INFO", env.LEVELS, "least severe level that is logged")
LOG_FORMAT = env.choice("DOSSIER_LOG_FORMAT", "json", ("json", "console"), "json or console")
LOGGING_CONFIG = "deploy.observability.logs.configure"
LOGGING = {"level": LOG_LEVEL, "format": LOG_FORMAT}
