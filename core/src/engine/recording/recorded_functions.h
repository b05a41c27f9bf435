// What a thread has recorded on meshes. Processes of a program record the same functions in the same
// order; collectives compare it, since values of one dtype and shape have no other name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plugrad/dtype.h"

namespace plugrad::engine {

class RecordedFunctions {
 public:
  static RecordedFunctions& of_this_thread();

  void add(std::string_view function, DType dtype, std::span<const int64_t> shape);
  /// Such as "12 on meshes, the last one sum, hash 90ab12cd": the hash is that of all.
  std::string text() const;

 private:
  uint64_t count_ = 0, hash_ = 0;
  std::string last_;
};

}  // namespace plugrad::engine
