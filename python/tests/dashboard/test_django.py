"""The application of docs/dashboard.md with Django: staff see the dashboard, others do not, and Django's pages stay."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.snippets import ROOT, blocks

if TYPE_CHECKING:
    from pathlib import Path

VISITS = """
import shop_asgi
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from starlette.testclient import TestClient

call_command("migrate", verbosity=0)
statuses = []
with TestClient(shop_asgi.application, base_url="http://localhost") as client:
    statuses.append(client.get("/queues/").status_code)
    for is_staff in (False, True):
        user = User.objects.create_user(f"ada{is_staff}", password="x", is_staff=is_staff)
        session = SessionStore()
        session[auth.SESSION_KEY] = str(user.pk)
        session[auth.BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        client.cookies = {settings.SESSION_COOKIE_NAME: session.session_key}
        page = client.get("/queues/")
        statuses.append(page.status_code)
    statuses.append("<bdi>adaTrue</bdi>" in page.text)
shop_asgi.queues.close()
print(statuses)
"""


@pytest.mark.slow
def test_staff_see_the_dashboard(url: str, tmp_path: Path) -> None:
    for each in blocks(ROOT / "docs" / "dashboard.md"):
        if each.file:
            (tmp_path / each.file).write_text(each.text.replace("redis://localhost", url), encoding="utf-8")
    (tmp_path / "visits.py").write_text(VISITS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "visits.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stdout, done.returncode) == ("[403, 403, 200, True]\n", 0), done.stderr
