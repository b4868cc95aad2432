"""Sales reports that a FastAPI application lets workers build. `make example-fastapi` starts it."""
