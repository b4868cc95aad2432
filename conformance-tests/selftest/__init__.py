"""The suite's test of itself: seeded bugs in the scripts and in two clients, and the cases that have to catch them.

`seeded_bugs/` has the bugs. `plan` chooses what is run, `client_copies` makes clients with bugs, `pool` runs cases on them,
several at a time, `score` counts, and `caught.json` says which cases were seen to catch which bugs.
"""
