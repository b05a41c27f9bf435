// PTX text to a program that the host can run, one work-item after the other: enough of PTX for
// what compilers make of plugrad's kernels. What is not understood is refused, never guessed.
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

// Operands are numbers of slots: registers, constants, special registers and addresses of symbols.
struct Inst {
  Step step = nullptr;
  std::array<uint32_t, 4> to{}, from{};
  std::vector<uint32_t> tile;  // of an mma: A, then B, then C
  uint32_t lanes = 1;          // of a load or store
  int64_t offset = 0;          // of its address, which is from[0] of a load, to[0] of a store
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
  std::vector<uint64_t> slots;          // as an item begins
  std::array<uint32_t, 12> specials{};  // slots of tid, ntid, ctaid, nctaid by axis; 0: not used
  std::vector<Symbol> params, shared, local;
  uint64_t params_size = 0, shared_size = 0, local_size = 0;
};

struct Program {
  std::string target;  // "sm_80"
  std::map<std::string, Kernel> kernels;
};

// Throws std::runtime_error naming the line.
Program parse_ptx(std::string_view text);

// Of an instruction with its modifiers, such as "setp.lt.s32"; nullptr: not known. `lanes` is that
// of a vector load or store.
Step find_step(const std::string& mnemonic, uint32_t& lanes);

// A copy of cp.async, whose bytes arrive when its item waits for them.
struct Copy {
  char* to;
  const char* from;
  uint32_t bytes, read;  // the others are 0
  uint64_t group;
};

// One work-item while it runs.
struct Item {
  std::vector<uint64_t> slots;
  std::vector<char> local;
  uint32_t at = 0;
  bool is_done = false, is_waiting = false;
  bool is_at_mma = false;  // behind it already, without its result
  std::vector<Copy> copies;
  uint64_t copy_groups = 0;  // committed ones

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

// Thrown where an item does what a GPU reports as an error.
struct Fault {
  int code;
  std::string what;
};

// D = A * B + C on the registers of a warp, all of whose items are at the instruction.
void multiply_tiles(std::vector<Item*> warp, const Inst& inst);

// Throws Fault unless the bytes are memory of the device.
using CheckAccess = void (*)(const void* at, uint64_t size);

struct Grid {
  std::array<uint32_t, 3> groups{}, items{};
};
// Runs all groups, one after the other. Throws Fault.
void run_kernel(const Kernel& kernel, const Grid& grid, const std::vector<char>& params,
                CheckAccess check_access);

}  // namespace plugrad::cuda_double
