// Results of searches in a text file, one line a result, shared by any number of processes and
// machines: lines are only ever added, whole, and each has a checksum, so that a writer that is
// killed costs at most its own line. Files are merged by concatenation. Nothing in them is trusted:
// a list is used where it is legal.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plugrad::engine {

struct SearchRecord {
  uint32_t version = 0;          // codegen::kSearchVersion of the writer
  std::string device, compiler;  // what the times are of
  std::string kernel;            // its structure with sizes, and the options that change its code
  std::string family;            // its structure without sizes
  std::vector<int64_t> sizes;    // of its loops
  uint32_t width = 0;            // BEAM of a search that ended; 0: of one that did not
  uint32_t tried = 0;            // lists timed until then; 0: written before this was kept
  double seconds = 0, first_seconds = 0;  // of one launch, and of the heuristic's kernel
  std::string list;                       // codegen::parse_optimisations reads it

  /// Whether both are about the same kernel on the same device, by the same compiler and codegen.
  bool same_key(const SearchRecord& other) const {
    return version == other.version && device == other.device && compiler == other.compiler &&
           kernel == other.kernel;
  }
};

/// Without the line's end.
std::string to_line(const SearchRecord& record);
/// Nothing where the line is damaged or of another form.
std::optional<SearchRecord> parse_record(std::string_view line);

class SearchDb {
 public:
  explicit SearchDb(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// The last record with the key of `wanted`.
  std::optional<SearchRecord> find(const SearchRecord& wanted);
  /// Of the same family, those of the nearest sizes first, other devices' after this one's; at most
  /// `most`.
  std::vector<SearchRecord> near(const SearchRecord& wanted, size_t most);
  /// One warning where the file cannot be written.
  bool add(const SearchRecord& record);
  /// Without the warning.
  void add_quietly(const SearchRecord& record);
  /// Whether there is nothing to look up.
  bool is_empty();
  /// One record a key, in the order of their first appearance.
  std::vector<SearchRecord> all();

 private:
  void refresh();
  void read_lines(std::string_view text);
  void warn(const std::string& text);
  // Whether it did; `problem` where that is a surprise.
  bool append(const SearchRecord& record, std::string& problem);

  std::mutex mutex_;
  std::string path_;
  bool was_warned_ = false;
  int64_t seen_size_ = -1, seen_time_ns_ = -1;
  uint64_t seen_file_ = 0;
  std::vector<SearchRecord> records_;
  std::unordered_multimap<std::string, size_t> by_kernel_, by_family_;
};

/// That of PLUGRAD_SEARCH_DB, else search.tsv in the cache directory; without a path where there is
/// none.
SearchDb& search_db();

}  // namespace plugrad::engine
