"""The settings of the project."""

import os
from pathlib import Path

SECRET_KEY = "only for this example"  # noqa: S105
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "django_app.urls"
WSGI_APPLICATION = "django_app.wsgi.application"
INSTALLED_APPS = ["leaseq.outbox.django", "django_app"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(os.environ["EXAMPLE_FOLDER"]) / "orders.sqlite3",
        # web server, worker and relay write: each waits for the lock from the start of its transaction
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
}
LEASEQ_URL = os.environ["REDIS_URL"]
