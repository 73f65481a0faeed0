"""One data set per file, exposed as `DATA`."""
