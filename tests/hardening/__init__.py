"""Hardening: mutated inputs, faults at random moments, load. Quick in `make test-all`, long in `make harden`."""
