"""Read the record of a run, draw it, and write the page; compare runs."""
