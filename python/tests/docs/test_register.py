"""Every block and every command that the pages give an operator to paste is run by a test that is named here."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

import pytest
from support.snippets import ROOT, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TESTS = ROOT / "python" / "tests"
PAGES: Final = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "spec").glob("1[01]-*.md")),
    ROOT / "spec" / "08-failures.md",
    *sorted((ROOT / "cleaner").rglob("*.md")),
]
NOT_PASTED: Final = {"output", "py", "go", "rust"}
"""Programs in Go are run by `make go` (pages_test.go), those in Rust by `make rust` (tests/pages.rs)."""
RUN_BY_KIND: Final = {
    "python": "docs/test_docs.py::test_python_runs_as_written",
    "ts": "docs/test_docs.py::test_typescript_runs_as_written",
    "js": "docs/test_docs.py::test_programs_of_node_are_those_that_are_run",
}
NAMES: Final = "docs/test_docs.py::test_shell_lines_name_what_there_is"
RESTART: Final = "docs/test_restarts.py::test_a_restart_keeps_every_item"
BACKUP: Final = "docs/test_backups.py::test_a_restored_snapshot_"
PASTED: Final = "docs/test_pasted_lines.py::test_"
KUBE: Final = "../../deploy/tests/test_"
EXAMPLES: Final = "../../examples/tests/"
BLOCKS: Final = {
    "README.md": {
        "make demo": "docs/test_readme.py::test_shell_lines_name_what_there_is",
        "pip install": "docs/test_readme.py::test_shell_lines_name_what_there_is",
    },
    "docs/backups.md": dict.fromkeys(("redis-cli -h", "leaseq doctor"), f"{BACKUP}has_all_queues"),
    "docs/benchmarks.md": {"make bench-peers": NAMES},
    "docs/cleaner.md": {
        "pip install": f"{PASTED}the_lines_about_the_cleaner",
        "url = ": f"{PASTED}the_cleaner_of_the_unit",
    },
    "docs/cli.md": {
        "$ leaseq": "cli/test_docs.py::test_the_sessions_print_what_the_page_says",
        "$ printf": "cli/test_docs.py::test_the_sessions_print_what_the_page_says",
        "mkdir -p": f"{PASTED}the_lines_about_completion",
    },
    "docs/concepts.md": {
        "  add ──": "",
        "UPDATE report": "",
    },  # a drawing; a line for the reader's own database
    "docs/dashboard.md": {
        "pip install": f"{PASTED}the_lines_about_the_dashboard",
        "leaseq dashboard": f"{PASTED}the_lines_about_the_dashboard",
    },
    "docs/deployment.md": {
        "aclfile ": RESTART,
        "user default ": RESTART,
        "replicaof ": "docs/test_deployment.py::test_a_replica_follows_with_the_lines_of_the_page",
        "[Unit]": f"{PASTED}the_worker_of_the_unit",
        "leaseq acl": f"{PASTED}the_lines_about_users",
        "**/.git": "docs/test_deployment.py::test_the_dockerignore_keeps_what_the_images_need",
        "FROM ": f"{PASTED}the_worker_of_the_containers",
        "services:": f"{PASTED}the_server_of_the_compose_file",
    },
    "docs/django.md": {"leaseq worker": f"{PASTED}the_worker_of_django"},
    "docs/doctor.md": {"leaseq doctor": f"{PASTED}the_lines_about_doctor"},
    "docs/examples.md": {
        "make example-fastapi": f"{EXAMPLES}test_web_examples.py::test_fastapi_builds_a_report_and_shows_its_progress"
    },
    "docs/fastapi.md": {"leaseq worker": f"{PASTED}the_programs_of_fastapi"},
    "docs/fastify.md": {"$ node": "docs/test_docs.py::test_programs_of_node_are_those_that_are_run"},
    "docs/forks.md": {"leaseq worker": f"{PASTED}the_programs_of_gunicorn"},
    "docs/index.md": {"pip install": NAMES},
    "docs/jobs.md": {
        "leaseq worker --verbose": "jobs/test_docs.py::test_a_worker_and_who_enqueues_are_two_programs",
        "python -c": "jobs/test_docs.py::test_a_worker_and_who_enqueues_are_two_programs",
        "leaseq worker shop.tasks": f"{PASTED}the_worker_of_several_queues",
    },
    "docs/kubernetes.md": {
        "apiVersion: ": f"{KUBE}page.py::test_a_manifest_fits_its_schema",
        "helm ": f"{KUBE}page.py::test_the_line_that_installs",
        "rules:": f"{KUBE}autoscaling.py::test_the_adapter_of_the_page_counts_the_same",
        "user keda": f"{KUBE}autoscaling.py::test_the_scaler_of_keda_counts_on_a_server",
        **dict.fromkeys(
            ("tools/build_image.sh", "kubectl "), f"{KUBE}page.py::test_other_lines_name_files_that_there_are"
        ),
        **dict.fromkeys(("url:", "serviceMonitor:", "keda:"), f"{KUBE}page.py::test_values_render"),
    },
    "docs/outbox.md": {
        "leaseq outbox relay": "outbox/test_programs.py::test_the_relay_of_the_page",
        "python -m django": "outbox/test_programs.py::test_the_relay_of_django",
        "SELECT id": "outbox/test_programs.py::test_rows_with_an_error_are_tried_again_with_the_lines_of_the_page",
    },
    "docs/porting.md": {"leaseq-conformance ": NAMES},
    "docs/quickstart.md": {"pip install": NAMES, "leaseq worker": f"{PASTED}the_worker_of_the_quick_start"},
    "docs/transfer.md": {"leaseq export": f"{PASTED}the_lines_about_export_and_import"},
    "docs/typescript.md": {"npm --prefix": NAMES},
    "docs/upgrading.md": {"leaseq workers": f"{PASTED}the_lines_about_upgrading"},
    "docs/worker.md": {"leaseq workers": f"{PASTED}the_lines_about_steering"},
    "docs/worker-processes.md": {
        " " * 26 + "fork": "",
        "livenessProbe:": "jobs/test_worker_status.py::test_what_becomes_of_jobs_is_counted_by_function",
    },
}
"""For each page how its blocks start, and the test that runs each; "" if there is nothing to run."""

COMMANDS: Final = {
    "docs/backups.md": {
        "--appendonly no": f"{BACKUP}has_all_queues",
        "INFO persistence": f"{BACKUP}has_all_queues",
        "appendonly yes": "docs/test_backups.py::test_a_server_with_a_log_to_write_would_start_empty",
    },
    "docs/deployment.md": {
        "redis-cli --user admin --askpass": f"{PASTED}the_way_in_of_the_administrator",
        "user default off": "docs/test_restarts.py::test_doctor_finds_a_log_that_the_next_restart_cannot_read",
        "BGREWRITEAOF": "docs/test_restarts.py::test_doctor_finds_a_log_that_the_next_restart_cannot_read",
        "REDIS_URL=redis://shop:PASSWORD@redis.internal/0": f"{PASTED}the_worker_of_the_unit",
    },
    "docs/durability.md": {
        "appendfsync everysec": f"{PASTED}the_settings_of_operations",
        "appendfsync always": f"{PASTED}the_settings_of_operations",
    },
    "docs/doctor.md": {
        "appendfsync no": "operations/test_doctor.py::test_persistence",
        "min-replicas-to-write 0": "operations/test_doctor.py::test_replicas",
    },
    "docs/guarantees.md": {
        "appendfsync everysec": f"{PASTED}the_settings_of_operations",
        "appendfsync always": f"{PASTED}the_settings_of_operations",
        "min-replicas-to-write 1": "docs/test_deployment.py::test_a_replica_follows_with_the_lines_of_the_page",
    },
    "docs/operations.md": {
        "maxmemory-policy noeviction": f"{PASTED}the_settings_of_operations",
        "appendonly yes": f"{PASTED}the_settings_of_operations",
        "appendfsync everysec": f"{PASTED}the_settings_of_operations",
        "min-replicas-to-write 1": "docs/test_deployment.py::test_a_replica_follows_with_the_lines_of_the_page",
        "min-replicas-max-lag 10": "docs/test_deployment.py::test_a_replica_follows_with_the_lines_of_the_page",
    },
    "spec/11-security.md": {"user default off resetpass ~* &* +@all": RESTART},
}
"""The same for commands and settings of a server inside the text."""
COMMAND: Final = re.compile(
    r"`((?:[A-Z]{4,} [a-z~]|CONFIG |ACL |BGREWRITEAOF|redis-cli |user \w+ (?:on|off)|REDIS_URL=\w|systemctl )[^`]*"
    r"|BGREWRITEAOF|[a-z-]+ (?:yes|no|everysec|always|noeviction|\d+))`"
)


def pasted() -> Iterator[tuple[str, str]]:
    """Each block of the pages that is no Python or TypeScript, as its page and its text."""
    for page in PAGES:
        for block in blocks(page):
            if block.kind not in NOT_PASTED | RUN_BY_KIND.keys() and (
                page.parent.name != "spec" or block.text[:3] == "ACL"
            ):
                yield name_of(page), block.text


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_a_test_runs_each_block() -> None:
    missing = [
        f"{page}: {text.splitlines()[0]}"
        for page, text in pasted()
        if not any(text.startswith(start) for start in BLOCKS.get(page, {}))
    ]
    assert missing == [], "run it in a test as it stands, and name the test in BLOCKS"


def test_a_test_runs_each_command_in_the_text() -> None:
    found = {
        name_of(page): set(
            COMMAND.findall(
                re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
            )
        )
        for page in PAGES
    }
    assert {page: commands for page, commands in found.items() if commands} == {
        page: set(commands) for page, commands in COMMANDS.items()
    }, "run it in a test as it stands, and name the test in COMMANDS"


def test_nothing_is_named_that_is_gone() -> None:
    texts = list(pasted())
    gone = [
        f"{page}: {start}"
        for page, starts in BLOCKS.items()
        for start in starts
        if not any(name == page and text.startswith(start) for name, text in texts)
    ]
    assert gone == []


@pytest.mark.parametrize(
    "test",
    sorted(
        {
            *RUN_BY_KIND.values(),
            *(
                test
                for named in (BLOCKS, COMMANDS)
                for tests in named.values()
                for test in tests.values()
                if test
            ),
        }
    ),
)
def test_the_tests_are_there(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
