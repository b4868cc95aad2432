"""`python -m selftest`."""

from selftest.command import selftest_command

if __name__ == "__main__":
    selftest_command(prog_name="selftest")
