"""Schedules: jobs that are enqueued by themselves, once for each slot (LQ-JOB-12 to LQ-JOB-15)."""
