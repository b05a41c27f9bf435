#include "runtime/checks/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"

namespace plugrad::runtime {
namespace {

bool is_number(std::string_view text, double& out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size() && out >= 0;
}

std::string bits_text(uint32_t dtype, uint64_t bits) {
  return fmt::format("{} (0x{:0{}x})", value_text(dtype, bits), bits, 2 * dtype_bytes(dtype));
}

// The values at the same index of the buffers that the kernel reads.
std::string inputs_text(const Finding& f) {
  std::string out;
  const std::vector<uint32_t> params = LaunchData::buffer_params(f.kernel);
  for (std::size_t i = 0; i < f.data.region_of.size() && i < params.size(); ++i) {
    const pgr_ir_param& param = f.kernel.params[params[i]];
    const auto& region = f.data.regions[f.data.region_of[i]];
    if (!(param.flags & PGR_PARAM_READ) || dtype_bytes(param.dtype) == 0) continue;
    const uint64_t count = region.size() / dtype_bytes(param.dtype);
    if (count == 0) continue;
    const uint64_t index =
        f.difference.index < std::min(count, param.elem_count) ? f.difference.index : 0;
    out += fmt::format("{}buffer {}[{}] = {}", out.empty() ? "" : ", ", i, index,
                       value_text(param.dtype, bits_at(region, param.dtype, index)));
  }
  return out;
}

}  // namespace

std::string compare_value_error(std::string_view key, std::string_view value) {
  double number = 0;
  if (key == "stop") return value == "0" || value == "1" ? "" : "it takes 0 or 1";
  if (key == "share")
    return is_number(value, number) && number > 0 && number <= 100
               ? ""
               : "it takes a percentage of the program's time, above 0 and at most 100";
  if (key == "shrink")
    return is_number(value, number) ? "" : "it takes seconds; 0 leaves kernels as they are";
  return value.empty() ? fmt::format("it takes a {}", key == "with" ? "device" : "path") : "";
}

CompareOptions compare_options(const LayerChoice& choice) {
  CompareOptions out;
  for (const auto& [key, value] : choice.values) {
    if (key == "with") out.with = value;
    if (key == "stop") out.stop = value == "1";
    if (key == "share") is_number(value, out.share);
    if (key == "shrink") is_number(value, out.shrink_seconds);
    if (key == "folder") out.folder = value;
  }
  return out;
}

std::string describe(const Finding& f) {
  const Difference& d = f.difference;
  std::string out = fmt::format("kernel {} differs from {}: buffer {} [{}] is {}, {} gives {}",
                                f.kernel.name, f.other, d.argument, d.index,
                                bits_text(d.dtype, d.got), f.other, bits_text(d.dtype, d.expected));
  if (d.ulps != UINT64_MAX)
    out += fmt::format(", {} {} apart", d.ulps, is_float(d.dtype) ? "ulp" : "units");
  if (d.bound > 0) out += fmt::format(" (allowed: {:.3g})", d.bound);
  out += fmt::format("; {} of {} elements differ", d.count, d.elements);
  if (const std::string inputs = inputs_text(f); !inputs.empty())
    out += "\n  before the launch: " + inputs;
  return out;
}

}  // namespace plugrad::runtime
