"""Ready-made middleware, headers and receivers for libraries that an application may have. Each module has `install(app)`."""
