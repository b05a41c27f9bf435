// An arbitrary trace file gives a trace whose sums and exports are in range, or an Error. The first
// byte tells whether the rest is the file or the lines in it.
#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugrad/error.h"
#include "trace/compare.h"
#include "trace/export.h"
#include "trace/page.h"
#include "trace/summary.h"
#include "trace/trace.h"

namespace {

using namespace plugrad::tools::trace;

constexpr char kHeader[] = "{\"t\":\"trace\",\"version\":1}\n";

std::vector<std::byte> packed(const std::string& text) {
  std::vector<std::byte> file(text.size() + 1024);
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_FIXED) != Z_OK) __builtin_trap();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(file.data());
  stream.avail_out = static_cast<uInt>(file.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) __builtin_trap();
  file.resize(file.size() - stream.avail_out);
  deflateEnd(&stream);
  return file;
}

void check(const Trace& trace) {
  const Summary summary = summarise(trace);
  int64_t sum = 0;
  for (const int64_t part : summary.parts) {
    if (part < 0) __builtin_trap();
    sum += part;
  }
  if (sum != summary.wall_ns()) __builtin_trap();
  compare(trace, summary, trace, summary);
  if (to_chrome(trace).empty() || to_perfetto(trace).empty() || to_speedscope(trace).empty())
    __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span rest = std::as_bytes(std::span(data, size)).subspan(1);
  const std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  const Limits limits{
      .text_bytes = 1 << 20, .line_bytes = 1 << 16, .line_values = 1 << 14, .depth = 16};
  std::vector<std::byte> file(rest.begin(), rest.end());
  if (data[0] % 4 != 0) file = packed(data[0] % 4 == 1 ? text : kHeader + text);
  try {
    check(parse_trace(file, "trace", limits));
  } catch (const plugrad::Error& error) {
    if (error.kind() == plugrad::ErrorKind::Internal) __builtin_trap();
  }
  try {
    const PageTrace page = make_page_trace(file, "trace", limits);
    for (const char c : page.base64)
      if (c == '<' || c == '"') __builtin_trap();
  } catch (const plugrad::Error&) {
  }
  return 0;
}
