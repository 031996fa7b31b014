"""The public kit for testing operator packs."""
