"""One table per file, exposed as `TABLE`."""
