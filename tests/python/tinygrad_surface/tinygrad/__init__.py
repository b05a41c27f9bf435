"""The names that tinygrad's tests import, on plugrad. See docs/python-compatibility.md."""
from . import helpers as helpers
from . import nn as nn
from .device import Device as Device
from .dtype import dtypes as dtypes
from .helpers import Context as Context
from .helpers import GlobalCounters as GlobalCounters
from .helpers import getenv as getenv
from .jit import TinyJit as TinyJit
from .jit import Variable as Variable
from .tensor import Tensor as Tensor
