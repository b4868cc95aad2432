"""What the job layer reads and writes on a server: jobs, schedules, and the notes beside them."""
