// Caches the programs built last from source, so that a program is not rebuilt when it is loaded
// after its compilation, or twice.
#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "api.h"

namespace plugrad::opencl {

// Thread-safe. Programs are reference-counted: an evicted one stays valid for its other owners.
class RecentPrograms {
 public:
  RecentPrograms() = default;
  RecentPrograms(const RecentPrograms&) = delete;
  RecentPrograms& operator=(const RecentPrograms&) = delete;
  ~RecentPrograms() { clear(); }

  // The caller owns a reference. nullptr: not cached.
  cl_program find(const std::string& source, const std::string& options);
  // Takes its own reference; evicts the oldest program.
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
