"""`make chaos`: a table of what is lost, done twice or stuck under each kind of fault."""
