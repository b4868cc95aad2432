"""The suite's test of itself: every seeded bug is caught by the case that is to catch it, and every case catches one.

`bugs` lists the seeded bugs, `plan` says what of them and of the cases does not fit together, `hands` runs them,
several at a time, and `score` counts.
"""
