"""The service: HTTP around routers and a store. No bandit mathematics."""
