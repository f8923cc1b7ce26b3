from hypothesis import settings

# Kernels compile on first use, so there is no deadline; examples are the same on every run, so that a failure can be repeated.
settings.register_profile("thrifty", deadline=None, derandomize=True)
settings.load_profile("thrifty")
