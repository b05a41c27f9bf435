// Translates PTX into a program for the host that runs one work-item at a time. Supports the PTX
// that compilers generate for plugrad's kernels; unknown instructions are rejected.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::cuda_double {

struct Item;
struct Inst;
using Step = void (*)(Item&, const Inst&);

// Operands are slot indices: registers, constants, special registers and symbol addresses.
struct Inst {
  Step step = nullptr;
  std::array<uint32_t, 4> to{}, from{};
  std::vector<uint32_t> tile;  // of an mma: slots of A, then B, then C
  uint32_t lanes = 1;          // of a load or store
  int64_t offset = 0;          // of the address, which is from[0] of a load, to[0] of a store
  uint32_t target = 0;         // of a branch
  int guard = -1;              // slot of the predicate
  bool is_guard_negated = false;
  std::string text;  // for messages
};

struct Symbol {
  uint32_t slot = 0;
  uint64_t offset = 0;
};

struct Kernel {
  std::string name;
  std::vector<uint32_t> param_bytes, param_offsets;
  std::array<uint32_t, 3> max_block{1024, 1, 1};
  uint64_t max_items = 1024;
  std::vector<Inst> code;
  std::vector<uint64_t> slots;          // initial contents for an item
  std::array<uint32_t, 12> specials{};  // slots of tid, ntid, ctaid, nctaid by axis; 0: unused
  std::vector<Symbol> params, shared, local;
  uint64_t params_size = 0, shared_size = 0, local_size = 0;
};

struct Program {
  std::string target;  // "sm_80"
  std::map<std::string, Kernel> kernels;
};

// Throws std::runtime_error with the line.
Program parse_ptx(std::string_view text);

// The step of an instruction with its modifiers, e.g. "setp.lt.s32"; nullptr: unknown. `lanes` is
// the number of lanes of a vector load or store.
Step find_step(const std::string& mnemonic, uint32_t& lanes);

// A copy of cp.async, whose bytes arrive when the item waits for them.
struct Copy {
  char* to;
  const char* from;
  uint32_t bytes, read;  // the bytes beyond `read` are 0
  uint64_t group;
};

// State of a running work-item.
struct Item {
  std::vector<uint64_t> slots;
  std::vector<char> local;
  uint32_t at = 0;
  bool is_done = false, is_waiting = false;
  bool is_at_mma = false;  // has passed the instruction, but has no result yet
  std::vector<Copy> copies;
  uint64_t copy_groups = 0;  // number of committed groups

  template <typename T>
  T get(uint32_t slot) const {
    T value;
    std::memcpy(&value, &slots[slot], sizeof value);
    return value;
  }
  template <typename T>
  void set(uint32_t slot, T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    slots[slot] = bits;
  }
};

// Thrown if an item does something that a GPU reports as an error.
struct Fault {
  int code;
  std::string what;
};

// D = A * B + C on the registers of a warp; all items must be at the instruction.
void multiply_tiles(std::vector<Item*> warp, const Inst& inst);

// Throws Fault unless the bytes are device memory.
using CheckAccess = void (*)(const void* at, uint64_t size);

struct Grid {
  std::array<uint32_t, 3> groups{}, items{};
};
// Runs all groups in sequence. Throws Fault.
void run_kernel(const Kernel& kernel, const Grid& grid, const std::vector<char>& params,
                CheckAccess check_access);

}  // namespace plugrad::cuda_double
