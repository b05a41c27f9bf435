/// Convolution, pooling and resizing of images (n, channels, sizes…) with one or more axes of
/// sizes. A function named with 1d, 2d or 3d requires that many. window.h defines the options; an
/// option is one number for all axes, or a list with one number for each axis.
#pragma once

#include <utility>

#include "plugrad/tensor.h"

namespace plugrad {

/// Cross-correlation. Shape: (n, c, h, w) with weight (m, c / groups, kh, kw) and bias (m) ->
/// (n, m, (h + begin + end - dilation (kh - 1) - 1) / stride + 1, …). Dtype: the operands' common
/// one; halves are summed in f32; options.dtype says otherwise. Errors: User for ranks that differ,
/// channels that do not fit the groups, or a window larger than the padded image.
PLUGRAD_API Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvOptions& options = {});
PLUGRAD_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                          const ConvOptions& options = {});
PLUGRAD_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                          const ConvOptions& options = {});
PLUGRAD_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                          const ConvOptions& options = {});

/// Transposed convolution, the gradient of conv with respect to its input: each element of x is
/// multiplied with the weight and added to a window of the result. Shape: (n, c, h, w) with weight
/// (c, m / groups, kh, kw) and bias (m) -> (n, m, (h - 1) stride - begin - end + dilation (kh - 1)
/// + output_padding + 1, …). Dtype and errors as in conv; User for an output_padding that is not
/// below stride or dilation. Zeiler et al. 2010.
PLUGRAD_API Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                  const ConvTransposeOptions& options = {});
PLUGRAD_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const ConvTransposeOptions& options = {});
PLUGRAD_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const ConvTransposeOptions& options = {});
PLUGRAD_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const ConvTransposeOptions& options = {});

/// The largest element of each window of the last axes; other axes stay. Padding is never the
/// maximum; a NaN in a window is. Equal maxima share the gradient. Dtype: that of x. Errors: User
/// for windows that do not fit, or padding as large as a window.
PLUGRAD_API Tensor max_pool1d(const Tensor& x, const PerAxis& kernel = 2, const PoolOptions& = {});
PLUGRAD_API Tensor max_pool2d(const Tensor& x, const PerAxis& kernel = 2, const PoolOptions& = {});
PLUGRAD_API Tensor max_pool3d(const Tensor& x, const PerAxis& kernel = 2, const PoolOptions& = {});

/// The largest elements and their indices (i32): row-major over the pooled axes of the image
/// without padding; of equal elements, the index of the first.
using ValuesAndPlaces = std::pair<Tensor, Tensor>;
PLUGRAD_API ValuesAndPlaces max_pool1d_with_places(const Tensor& x, const PerAxis& kernel = 2,
                                                   const PoolOptions& = {});
PLUGRAD_API ValuesAndPlaces max_pool2d_with_places(const Tensor& x, const PerAxis& kernel = 2,
                                                   const PoolOptions& = {});
PLUGRAD_API ValuesAndPlaces max_pool3d_with_places(const Tensor& x, const PerAxis& kernel = 2,
                                                   const PoolOptions& = {});

/// Writes each element to its index in an image of zeros; of several elements with one index the
/// last is kept. Shape: (…, sizes…) -> (…, options.output_size). Elements with indices out of range
/// are dropped. Errors: User for indices of another shape or of a float dtype, for
/// indices that the host knows to be out of range, or an output_size that pooling would not reduce
/// to these sizes.
PLUGRAD_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const PerAxis& kernel = 2,
                                const UnpoolOptions& = {});
PLUGRAD_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const PerAxis& kernel = 2,
                                const UnpoolOptions& = {});
PLUGRAD_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const PerAxis& kernel = 2,
                                const UnpoolOptions& = {});

/// The mean of each window of the last axes; other axes stay. Dtype: that of x, integers as f32;
/// halves are summed in f32. Errors as for max_pool.
PLUGRAD_API Tensor avg_pool1d(const Tensor& x, const PerAxis& kernel = 2, const PoolOptions& = {});
PLUGRAD_API Tensor avg_pool2d(const Tensor& x, const PerAxis& kernel = 2, const PoolOptions& = {});
PLUGRAD_API Tensor avg_pool3d(const Tensor& x, const PerAxis& kernel = 2, const PoolOptions& = {});

/// Resizes the last axes to options.size, or by options.scale (rounded down). Element i is read at
/// (i + 1/2) old / new - 1/2, or at i (old - 1) / (new - 1) with align_corners; a given scale
/// replaces new / old. Dtype: that of x; Linear converts integers other than u8 to f32. Linear
/// computes u8 in integers and rounds after each axis, last axis first. Errors: User unless size or
/// scale is given for each axis and positive.
PLUGRAD_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace plugrad
