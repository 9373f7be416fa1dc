"""What everything else stands on: errors, keys, processes, files and devices."""
