"""Advice: which policy and alpha to run, worked out from a log by simulation."""
