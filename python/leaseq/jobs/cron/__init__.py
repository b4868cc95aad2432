"""Schedules: jobs that are enqueued automatically, once for each slot (LQ-JOB-12 to LQ-JOB-15)."""
