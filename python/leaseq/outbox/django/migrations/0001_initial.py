"""The table of the outbox."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):  # type: ignore[misc] # Django has no types
    """Creates the table."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="OutboxRow",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("item_id", models.CharField(max_length=256)),
                ("queue", models.CharField(max_length=100)),
                ("queue_group", models.CharField(max_length=100)),
                ("item", models.TextField()),
                ("created", models.FloatField()),
                ("tried", models.FloatField(blank=True, null=True)),
                ("error", models.TextField(blank=True, null=True)),
            ],
            options={"db_table": "leaseq_outbox"},
        ),
    ]
