from hypothesis import HealthCheck, settings

# Kernels compile on first use, so the first example of a test may take seconds.
settings.register_profile("secateur", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("secateur")
