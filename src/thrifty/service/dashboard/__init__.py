"""The dashboard: pages for people, rendered by the server, with one script and one stylesheet."""
