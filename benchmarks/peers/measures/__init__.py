"""The measures: each module says which steps it has, and does them."""
