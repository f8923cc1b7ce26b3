"""The command line: parse, call, show progress. No mathematics here."""
