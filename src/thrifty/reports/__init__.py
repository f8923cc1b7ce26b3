"""Reports: every page, picture and table for people. Compute rooms hand over data; only this room draws and writes it."""
