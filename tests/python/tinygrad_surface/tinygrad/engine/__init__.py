"""What tests import of tinygrad's engine."""
