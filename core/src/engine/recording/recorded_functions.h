// Functions that a thread has recorded on meshes, and results of them that it has read. All processes
// must record the same ones in the same order, and read the same results. Collectives compare them,
// and so find processes that read different values.
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

  /// `numbers` is a hash of the operands that are numbers.
  void add(std::string_view function, uint64_t numbers, DType dtype, std::span<const int64_t> shape,
           const sharding::Spec& spec);
  /// Of the last function: 1 is that of the first.
  uint64_t number() const { return count_; }
  /// The result of that function is read, by collectives.
  void read(uint64_t number);
  /// Such as "12 on meshes, hash 90ab12cd, result 11 read last, the last one sum": the hash is that
  /// of all.
  std::string text() const;

 private:
  uint64_t count_ = 0, hash_ = 0, read_ = 0;
  std::string last_;
};

}  // namespace plugrad::engine
