// The programs that were built from source last, so that what was just compiled, or is loaded
// twice, is not built again.
#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "api.h"

namespace plugrad::opencl {

// Thread-safe. Programs are reference-counted: one that leaves here lives on with its other owners.
class RecentPrograms {
 public:
  RecentPrograms() = default;
  RecentPrograms(const RecentPrograms&) = delete;
  RecentPrograms& operator=(const RecentPrograms&) = delete;
  ~RecentPrograms() { clear(); }

  // The caller owns a reference. nullptr: none was kept.
  cl_program find(const std::string& source, const std::string& options);
  // Takes a reference of its own; the oldest program goes.
  void keep(const std::string& source, const std::string& options, cl_program program);
  void clear();

 private:
  struct Entry {
    std::string source, options;
    cl_program program;
  };
  std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace plugrad::opencl
