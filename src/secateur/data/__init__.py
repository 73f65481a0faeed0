"""Hold rows and targets: in memory, in batches, in files, or behind a remote row source."""
