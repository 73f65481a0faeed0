"""One method or competitor per file, exposed as `METHOD`."""
