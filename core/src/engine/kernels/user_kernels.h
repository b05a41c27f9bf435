// The session's table of user-written kernels, by content.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace plugrad {
struct KernelAst;
}

namespace plugrad::engine {

/// The code of a UserKernel node: the source for the device if there is one, else the kernel IR,
/// else the AST.
struct UserKernelCode {
  std::string name;
  struct Source {
    std::string device, text;  // "CPU"
  };
  std::vector<Source> sources;
  std::vector<std::byte> ir;  // a kernel IR block
  std::shared_ptr<const KernelAst> ast;
  uint64_t group_count[3] = {1, 1, 1};  // for sources and the kernel IR
  uint32_t local_size[3] = {1, 1, 1};
  uint32_t param_count = 0;
  int64_t bytes = 0;  // total size of its buffers, for reports

  Hash128 hash() const;
};
using UserKernelPtr = std::shared_ptr<const UserKernelCode>;

/// Kernels by number, equal ones once. Entries are never removed: plans refer to them.
class UserKernelTable {
 public:
  uint32_t add(UserKernelCode kernel);
  const UserKernelPtr& operator[](uint32_t number) const { return kernels_.at(number); }
  size_t size() const { return kernels_.size(); }

 private:
  std::vector<UserKernelPtr> kernels_;
  std::unordered_map<Hash128, uint32_t, Hash128Hasher> by_hash_;
};

}  // namespace plugrad::engine
