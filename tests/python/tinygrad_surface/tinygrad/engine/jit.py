"""The error of a jitted function."""
import plugrad as pg

JitError = pg.UserError
