// Converts the public window options (plugrad/window.h) to checked lists with one entry per axis.
#pragma once

#include <string>
#include <string_view>

#include "autodiff/windows.h"
#include "plugrad/window.h"
#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::tensor {

autodiff::Context context_of(Recorder& recorder);

/// One number for each axis, each at least `least`. Errors: User, with the option's name.
std::vector<int64_t> each_axis(std::string_view function, std::string_view setting,
                               const PerAxis& given, size_t axes, int64_t least);
/// {begin, end} of each axis. Errors: User for other counts, unknown names, "same" with a stride.
Padding::Sides sides_of(std::string_view function, const Padding& padding,
                        const autodiff::Windows& windows);

/// For errors: how to move the channels of an image from the last axis to axis 1; empty if axis 1
/// has that many already, or the last axis has not.
std::string channel_advice(const Tensor& x, int64_t channels);

/// Pads the last axes with `value`.
Tensor pad_image(const Tensor& x, const Padding::Sides& sides, const Tensor& value = 0);

/// Errors: User where no window fits an axis of the padded image.
void require_windows(std::string_view function, const autodiff::Windows& windows, const Tensor& x,
                     const Tensor& padded);

/// The number of windows along an axis of `size`, padded. Errors: User if a size within the
/// variable's bounds has none.
AxisSize window_count(std::string_view function, const autodiff::Windows& windows, size_t axis,
                      const AxisSize& size, std::pair<int64_t, int64_t> pads);

/// x at its largest size, with `fill` beyond the variable sizes of its last axes.
Tensor whole_image(const Tensor& x, const Tensor& fill, size_t axes);

/// (…, image…) -> (…, windows…, kernel…).
Tensor window_view(const Tensor& x, const autodiff::Windows& windows);

}  // namespace plugrad::tensor
