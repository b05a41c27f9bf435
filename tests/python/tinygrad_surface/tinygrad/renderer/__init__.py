"""Renderers of tinygrad: none."""
