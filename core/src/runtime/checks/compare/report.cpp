#include "runtime/checks/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "base/storage/disk_cache.h"
#include "base/trace/json_line.h"
#include "plugrad/error.h"
#include "runtime/checks/compare/judge.h"
#include "runtime/checks/compare/shrink_kernel.h"
#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"
#include "runtime/checks/record/recorded_call.h"

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

std::string difference_text(const Difference& d, const std::string& other) {
  std::string out = fmt::format("buffer {} [{}] is {}, {} gives {}", d.argument, d.index,
                                bits_text(d.dtype, d.got), other, bits_text(d.dtype, d.expected));
  if (d.ulps != UINT64_MAX)
    out += fmt::format(", {} {} apart", d.ulps, is_float(d.dtype) ? "ulp" : "units");
  if (d.bound > 0) out += fmt::format(" (allowed: {:.3g})", d.bound);
  return out + fmt::format("; {} of {} elements differ", d.count, d.elements);
}

// The folder for files of a report, made if it is not there; empty without a cache directory.
std::string report_folder(const std::string& given) {
  const std::string& cache = disk_cache().directory();
  const std::string folder = !given.empty() || cache.empty() ? given : cache + "/differences";
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  return folder;
}

constexpr std::size_t kLongestToken = 8 << 10;

uint64_t fnv1a(uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

std::string to_base64url(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  uint32_t bits = 0, count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (count += 8; count >= 6; count -= 6) text += kDigits[bits >> (count - 6) & 63];
  }
  if (count) text += kDigits[bits << (6 - count) & 63];
  return text;
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
  std::string out = fmt::format("kernel {} differs from {}: {}", f.kernel.name, f.other,
                                difference_text(f.difference, f.other));
  if (const std::string inputs = inputs_text(f); !inputs.empty())
    out += "\n  before the launch: " + inputs;
  return out;
}

std::string difference_json(const Finding& f) {
  const Difference& d = f.difference;
  trace::JsonLine line;
  line.add("reference", f.other).add("buffer", d.argument).add("index", d.index);
  line.add("got", bits_text(d.dtype, d.got)).add("expected", bits_text(d.dtype, d.expected));
  if (d.ulps != UINT64_MAX) line.add("ulp", d.ulps);
  line.add("differing", d.count).add("elements", d.elements);
  return line.str();
}

std::string write_replay(const Finding& f, const std::string& given) {
  const std::string folder = report_folder(given);
  if (folder.empty()) return "";
  const auto ir = f.kernel.encode();
  const std::string path = fmt::format("{}/{}-{:016x}.rec", folder, f.kernel.name, hash128(ir).low);
  try {
    RecordingWriter out(path, f.device);
    out.write({{"call", "kernel"}, {"kernel", 1}, {"name", f.kernel.name}, {"ast", ""}}, ir);
    for (std::size_t i = 0; i < f.data.regions.size(); ++i) {
      const auto& region = f.data.regions[i];
      out.write({{"call", "alloc"}, {"buffer", i + 1}, {"bytes", region.size()}});
      out.write({{"call", "copy_in"}, {"buffer", i + 1}, {"offset", 0}, {"bytes", region.size()}},
                region);
    }
    std::vector<std::size_t> buffers = f.data.region_of;
    for (std::size_t& buffer : buffers) ++buffer;
    out.write({{"call", "launch"},
               {"kernel", 1},
               {"buffers", buffers},
               {"scalars", f.data.scalars},
               {"groups", f.data.group_count},
               {"local", f.data.local_size}});
    for (std::size_t i = 0; i < f.got.size(); ++i)
      out.write({{"call", "copy_out"},
                 {"buffer", i + 1},
                 {"offset", 0},
                 {"bytes", f.got[i].size()},
                 {"hash", hash128(f.got[i]).hex()}},
                f.got[i]);
  } catch (const Error&) {
    return "";
  }
  return path;
}

std::string conformance_token(const KernelLines& kernel, const std::string& given) {
  // As sdk/conformance/driver/replay.cpp encodes it: the first random test with its seed of run 0.
  const std::string id = "l2.random.000";
  const std::string head =
      fmt::format("{} {:x}", id, fnv1a(fnv1a(0xcbf29ce484222325, fmt::format("{:016x}/", 0)), id));
  const auto ir = kernel.encode();
  const std::string_view payload(reinterpret_cast<const char*>(ir.data()), ir.size());
  const auto checksum = static_cast<uint32_t>(fnv1a(fnv1a(0, head), payload));
  std::string token = to_base64url(fmt::format("{} {:x}\n{}", head, checksum, payload));
  if (token.size() <= kLongestToken) return token;
  std::error_code failed;
  const auto folder = std::filesystem::absolute(report_folder(given), failed);
  const std::string path =
      fmt::format("{}/{}-{:016x}.token", folder.string(), kernel.name, hash128(ir).low);
  const auto bytes = as_bytes(token);
  return failed || replace_file(path, {&bytes, 1}) != 0 ? "" : path;
}

std::string describe_smallest(const Finding& f, Device& own, Device& other,
                              const CompareOptions& options) {
  std::optional<Difference> last;
  HostMemory got;
  const bool contract = (f.kernel.flags & PGR_IR_FLAG_CONTRACT) != 0;
  const Differs differs = [&](const KernelLines& kernel, const LaunchData& data) {
    try {
      const HostMemory expected = run_on(other, kernel, data, false);
      HostMemory now = run_on(own, kernel, data, contract);
      const auto found = judge(kernel, data, own.caps(), other, now, expected);
      if (!found) return false;
      last = found;
      got = std::move(now);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (!differs(f.kernel, f.data))
    return fmt::format(
        "kernel {}: alone, on a second handle of the device, it does not differ: the difference "
        "depends on the program (its other kernels, its timing)",
        f.kernel.name);
  const auto limit = std::chrono::duration<double>(options.shrink_seconds);
  const SmallKernel small =
      shrink_kernel(f.kernel, f.data, differs,
                    std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
  const Finding smaller{small.lines, small.data, *last, f.device, f.other, got};
  std::string out =
      fmt::format("kernel {}: operation: {}", f.kernel.name, operations_text(small.lines));
  out += fmt::format("\n  the smallest kernel that still differs has {} of {} lines{}:\n{}",
                     small.lines.lines.size(), f.kernel.lines.size(),
                     small.is_complete ? "" : " (the time for smaller ones was up)",
                     print(small.lines));
  out += fmt::format("  its {}", difference_text(*last, f.other));
  if (const std::string inputs = inputs_text(smaller); !inputs.empty())
    out += "\n  before its launch: " + inputs;
  if (const std::string path = write_replay(smaller, options.folder); !path.empty())
    out += fmt::format("\n  repeat it: plugrad replay {} --device {} --compare {}", path, f.device,
                       f.other);
  if (const std::string filter = suite_filter(small.lines); !filter.empty())
    out += fmt::format("\n  the suite's tests of it: plugrad conformance --device {} --filter {}",
                       f.device, filter);
  if (const std::string token = conformance_token(small.lines, options.folder); !token.empty())
    out +=
        fmt::format("\n  the kernel on random inputs: plugrad conformance --device {} --replay {}",
                    f.device, token);
  return out;
}

}  // namespace plugrad::runtime
