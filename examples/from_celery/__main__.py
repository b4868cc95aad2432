"""The command `python -m from_celery`: runs before.py, then after.py."""

from example_run.before_and_after import run

if __name__ == "__main__":
    run("from_celery")
