// Reads the lines of a trace file: a sequence of gzip members, each of whole lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plugrad::tools::trace {

/// Larger inputs are refused before memory for them is allocated.
struct Limits {
  uint64_t text_bytes = uint64_t{8} << 30;  ///< of all lines
  uint64_t line_bytes = uint64_t{64} << 20;
  uint64_t line_values = uint64_t{16} << 20;  ///< a parsed value takes 16 bytes
  int depth = 64;                             ///< of brackets
};

/// How the lines end.
enum class Ending {
  Whole,
  CutOff,    ///< within a member or a line
  Damaged,   ///< bytes that are not gzip
  TooLarge,  ///< beyond a limit
};

/// True if `file` begins like gzip.
bool is_gzip(std::span<const std::byte> file);

/// Yields line by line; holds one line and one block of text. `file` must outlive it.
class LineReader {
 public:
  explicit LineReader(std::span<const std::byte> file, const Limits& limits = {});
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line without its newline, valid until the next call; nothing at the end.
  std::optional<std::string_view> next();
  /// Once next() has returned nothing.
  Ending ending() const { return ending_; }

 private:
  struct Inflater;

  bool fill();

  Limits limits_;
  std::unique_ptr<Inflater> inflater_;
  std::string text_;
  size_t line_ = 0, searched_ = 0;  // in text_: start of the next line, end of what has no newline
  uint64_t total_ = 0;
  bool at_end_ = false;
  Ending ending_ = Ending::Whole;
};

/// True if a JSON parser needs no more memory and depth for `line` than the limits allow.
bool fits(std::string_view line, const Limits& limits);

}  // namespace plugrad::tools::trace
