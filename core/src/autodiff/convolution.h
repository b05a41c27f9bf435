// Convolution as nodes: how it is written over its window view, how it is found again, and its
// derivatives. Any number of spatial axes.
//
// The view of windows repeats rows of the image (reshape, expand, shrink), so the generic rules
// would give a data gradient that adds many overlapping views. Here it is a convolution of the
// padded gradient with the flipped weight: one reduction over (out channels, kernel height, kernel
// width).
#pragma once

#include <optional>

#include "autodiff/windows.h"

namespace plugrad::autodiff {

/// Cross-correlation: image (n, groups * ci, h, w), weight (groups * co, ci, kh, kw). Elements of
/// the padding are in no product, so that an infinite weight beside them does no harm; nor are
/// elements of the weight that only fill it up.
struct Convolution {
  Id image = kNoId, weight = kNoId;
  int64_t groups = 1;
  List stride, dilation;
  List padding = {};   // before and after each spatial axis; empty for none
  Id present = kNoId;  // which elements of the weight count, in its shape; kNoId for all
};

/// The image of a convolution as (n, groups, co, oh, ow, ci, kh, kw), the weight in the same shape,
/// and which products there are; kNoId for all.
struct Operands {
  Id image, weight, inside = kNoId;
};
Operands convolution_operands(Context& context, const Convolution& convolution);

/// One Reduce over the last axes of (n, groups, co, oh, ow, ci, kh, kw), ci and after, which stay
/// with size 1.
Id build_convolution(Context& context, const Convolution& convolution);

/// The convolution that build_convolution turned into this node, if it is one.
std::optional<Convolution> match_convolution(Context& context, Id node);

/// What an element of the output adds to each element of the image it was computed from: y (n,
/// groups * co, oh, ow), weight as in Convolution -> (n, groups * ci, image…).
struct Transposed {
  Id y = kNoId, weight = kNoId;
  int64_t groups = 1;
  List stride, dilation;
  List image;                // its sizes; (oh - 1) * stride + dilation * (kh - 1) + 1 at least
  List crop = {};            // of that image, before and after each spatial axis; empty for none
  Id present = kNoId;        // of the weight, as in Convolution
  bool store_weight = true;  // a weight that was filled up becomes a value of its own
};
Id transposed_convolution(Context& context, const Transposed& transposed);

struct ConvolutionGradient {
  Id image = kNoId, weight = kNoId;  // kNoId where not asked for
};
/// `gradient` is that of the Reduce node `node`.
ConvolutionGradient convolution_gradient(Context& context, const Convolution& convolution, Id node,
                                         Id gradient, bool to_image, bool to_weight);

}  // namespace plugrad::autodiff
