"""Values of records, typed."""
