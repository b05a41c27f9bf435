// The bound of a comparison. Most ops are exact or correctly rounded, so two devices must agree in
// every bit. The other ops (functions, quotients of a device that does not round them correctly,
// products that may be contracted, float atomics, tensor cores) may differ by a few ulp. What that
// does to a kernel's results is measured: the kernel runs again with each such result moved up or
// down by its allowed error.
//   f32 = MUL %4 %5          f32 = MUL %4 %5
//                       ->   f32 = WHERE |x| < limit, x + |x| * (+-ulps * epsilon), x
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "runtime/checks/compare/kernel_lines.h"

namespace plugrad::runtime {

/// Errors in ulp that a device with these capabilities may make, by line; all 0 if its results must
/// be exact.
std::vector<double> allowed_errors(const KernelLines& kernel, const pgr_device_caps& caps,
                                   const pgr_device_caps& other_caps);

/// One ulp for every arithmetic result: of kernels that compute the same in another order.
std::vector<double> errors_of_reordering(const KernelLines& kernel);

/// Number of variants by which the bound is measured.
inline constexpr uint32_t kRoundingVariants = 4;
/// Where so many variants leave an element beyond its bound: of 10^4 elements that each sum some
/// errors, those of one may cancel in all of a few variants.
inline constexpr uint32_t kMostRoundingVariants = 20;

/// The kernel with errors added: all up, all down, or up and down by line and variant.
KernelLines with_errors(const KernelLines& kernel, const std::vector<double>& errors,
                        uint32_t variant);

}  // namespace plugrad::runtime
