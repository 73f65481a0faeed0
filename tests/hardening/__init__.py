"""Hardening: mutated inputs, faults at random moments, load. Quick in `make test`, long in `make harden`."""
