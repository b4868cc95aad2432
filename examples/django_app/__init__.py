"""Orders in Django whose invoices workers write. `make example-django` starts it."""
