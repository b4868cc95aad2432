"""The table of the orders."""

from typing import Any, ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):  # type: ignore[misc] # Django has no types
    """Made by `makemigrations`."""

    initial = True
    dependencies: ClassVar[list[Any]] = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("customer", models.CharField(max_length=100)),
                ("euros", models.IntegerField()),
                ("job", models.CharField(default="", max_length=100)),
                ("invoice", models.TextField(default="")),
            ],
        ),
    ]
