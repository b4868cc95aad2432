"""The store of the job layer on a server: jobs, schedules, and the states beside them."""
