"""What tinygrad's tests import of their own folder."""
