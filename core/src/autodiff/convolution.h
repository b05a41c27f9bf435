// Convolution as tensor nodes over a window view: building it, recognising it, and its derivatives,
// for any number of spatial axes.
//
// The window view repeats rows of the image (reshape, expand, shrink): the generic rules would add
// many overlapping views. Instead, the data gradient is a convolution of the padded gradient with
// the flipped weight: one reduction over (out channels, kernel height, kernel width).
#pragma once

#include <optional>

#include "autodiff/windows.h"
#include "base/internal.h"

namespace plugrad::autodiff {

/// Cross-correlation: image (n, groups * ci, h, w), weight (groups * co, ci, kh, kw). Products
/// exclude elements of the padding, so that an infinite weight meets no 0, and elements that only
/// pad the weight.
struct Convolution {
  Id image = kNoId, weight = kNoId;
  int64_t groups = 1;
  List stride, dilation;
  List padding = {};   // before and after each spatial axis; empty for none
  Id present = kNoId;  // mask of the weight's elements, in its shape; kNoId for all
};

/// The image of a convolution as (n, groups, co, oh, ow, ci, kh, kw), the weight in the same shape,
/// and the mask of products; kNoId for all.
struct Operands {
  Id image, weight, inside = kNoId;
};
Operands convolution_operands(Context& context, const Convolution& convolution);

/// One Reduce over the axes from ci on of (n, groups, co, oh, ow, ci, kh, kw), which stay with size
/// 1.
Id build_convolution(Context& context, const Convolution& convolution);

/// The convolution from which build_convolution made this node, if any.
PLUGRAD_INTERNAL std::optional<Convolution> match_convolution(Context& context, Id node);

/// A transposed convolution: y (n, groups * co, oh, ow), weight as in Convolution -> (n, groups *
/// ci, image…).
struct Transposed {
  Id y = kNoId, weight = kNoId;
  int64_t groups = 1;
  List stride, dilation;
  List image;                // its sizes; at least (oh - 1) * stride + dilation * (kh - 1) + 1
  List crop = {};            // of that image, before and after each spatial axis; empty for none
  Id present = kNoId;        // of the weight, as in Convolution
  bool store_weight = true;  // store the padded weight
};
Id transposed_convolution(Context& context, const Transposed& transposed);

struct ConvolutionGradient {
  Id image = kNoId, weight = kNoId;  // kNoId unless asked for
};
/// `gradient` is the gradient of the Reduce `node`.
ConvolutionGradient convolution_gradient(Context& context, const Convolution& convolution, Id node,
                                         Id gradient, bool to_image, bool to_weight);

}  // namespace plugrad::autodiff
