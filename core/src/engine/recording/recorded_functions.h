// Functions that a thread has recorded on meshes. All processes must record the same ones in the
// same order. Collectives compare them, and so find processes that read different values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plugrad/dtype.h"
#include "sharding/spec.h"

namespace plugrad::engine {

class RecordedFunctions {
 public:
  static RecordedFunctions& of_this_thread();

  void add(std::string_view function, DType dtype, std::span<const int64_t> shape,
           const sharding::Spec& spec);
  /// Such as "12 on meshes, the last one sum, hash 90ab12cd": the hash is that of all.
  std::string text() const;

 private:
  uint64_t count_ = 0, hash_ = 0;
  std::string last_;
};

}  // namespace plugrad::engine
