"""The Python array API standard, version 2024.12, for tensors of plugrad.

    xp = x.__array_namespace__()
    print(xp.mean(xp.astype(x, xp.float32)))

There are no complex dtypes: complex64, complex128 and the extension fft are missing.
"""
from .._plugrad import bool_ as bool
from .._plugrad import (float32 as float32, float64 as float64, int8 as int8, int16 as int16,
                        int32 as int32, int64 as int64, uint8 as uint8, uint16 as uint16,
                        uint32 as uint32, uint64 as uint64)
from .._version import __version__ as __version__
from . import linalg as linalg
from ._constants import e as e, inf as inf, nan as nan, newaxis as newaxis, pi as pi
from ._creation import (
    arange as arange, asarray as asarray, empty as empty, empty_like as empty_like, eye as eye,
    from_dlpack as from_dlpack, full as full, full_like as full_like, linspace as linspace,
    meshgrid as meshgrid, ones as ones, ones_like as ones_like, tril as tril, triu as triu,
    zeros as zeros, zeros_like as zeros_like)
from ._dtypes import (
    astype as astype, can_cast as can_cast, finfo as finfo, iinfo as iinfo,
    isdtype as isdtype, result_type as result_type)
from ._elementwise_binary import (
    add as add, atan2 as atan2, bitwise_and as bitwise_and,
    bitwise_left_shift as bitwise_left_shift, bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, clip as clip,
    copysign as copysign, divide as divide, equal as equal, floor_divide as floor_divide,
    greater as greater, greater_equal as greater_equal, hypot as hypot, less as less,
    less_equal as less_equal, logaddexp as logaddexp, logical_and as logical_and,
    logical_or as logical_or, logical_xor as logical_xor, maximum as maximum, minimum as minimum,
    multiply as multiply, nextafter as nextafter, not_equal as not_equal, pow as pow,
    remainder as remainder, subtract as subtract)
from ._elementwise_unary import (
    abs as abs, acos as acos, acosh as acosh, asin as asin, asinh as asinh, atan as atan,
    atanh as atanh, bitwise_invert as bitwise_invert, ceil as ceil, conj as conj, cos as cos,
    cosh as cosh, exp as exp, expm1 as expm1, floor as floor, imag as imag, isfinite as isfinite,
    isinf as isinf, isnan as isnan, log as log, log10 as log10, log1p as log1p, log2 as log2,
    logical_not as logical_not, negative as negative, positive as positive, real as real,
    reciprocal as reciprocal, round as round, sign as sign, signbit as signbit, sin as sin,
    sinh as sinh, sqrt as sqrt, square as square, tan as tan, tanh as tanh, trunc as trunc)
from ._info import VERSION as __array_api_version__
from ._info import __array_namespace_info__ as __array_namespace_info__
from ._linear_algebra import (
    matmul as matmul, matrix_transpose as matrix_transpose, tensordot as tensordot,
    vecdot as vecdot)
from ._manipulation import (
    broadcast_arrays as broadcast_arrays, broadcast_to as broadcast_to, concat as concat,
    expand_dims as expand_dims, flip as flip, moveaxis as moveaxis, permute_dims as permute_dims,
    repeat as repeat, reshape as reshape, roll as roll, squeeze as squeeze, stack as stack,
    tile as tile, unstack as unstack)
from ._searching import (
    argmax as argmax, argmin as argmin, argsort as argsort, count_nonzero as count_nonzero,
    nonzero as nonzero, searchsorted as searchsorted, sort as sort, take as take,
    take_along_axis as take_along_axis, where as where)
from ._sets import (
    unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
    unique_values as unique_values)
from ._statistics import (
    all as all, any as any, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum,
    diff as diff, max as max, mean as mean, min as min, prod as prod, std as std, sum as sum,
    var as var)
