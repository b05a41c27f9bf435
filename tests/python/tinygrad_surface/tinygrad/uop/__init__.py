"""tinygrad's graph, which is not here."""
