// The loops over groups and items, and the mapping from instructions to steps.
#include <algorithm>
#include <span>

#include "double/ptx_steps.h"

namespace plugrad::cuda_double {
namespace {

void branch(Item& item, const Inst& inst) {
  item.at = inst.target;
}
void leave(Item& item, const Inst&) {
  item.is_done = true;
}
void barrier(Item& item, const Inst&) {
  item.is_waiting = true;
}
void nothing(Item&, const Inst&) {}

Steps make_steps() {
  Steps steps;
  add_arithmetic(steps);
  add_bits(steps);
  add_memory(steps);
  add_comparisons(steps);
  add_conversions(steps);
  add_tiles(steps);
  steps["bra"] = branch;
  steps["ret"] = steps["exit"] = leave;
  steps["bar"] = steps["barrier"] = barrier;
  steps["membar"] = steps["fence"] = nothing;
  return steps;
}

// Modifiers of a mnemonic without effect on a machine that runs one item at a time.
bool is_dropped(const std::string& root, const std::string& part) {
  static const std::vector<std::string> kOfMemory = {
      "global", "shared", "local", "param", "const", "volatile", "relaxed",
      "weak",   "nc",     "gpu",   "sys",   "cta",   "L1",       "L2"};
  const auto is_one_of = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), part) != list.end();
  };
  if (root == "ld" || root == "st" || root == "atom" || root == "red") return is_one_of(kOfMemory);
  if (root == "bar" || root == "barrier" || root == "bra" || root == "membar" || root == "fence" ||
      root == "ret")
    return true;
  return root != "cvt" && part == "rn";
}

}  // namespace

Step find_step(const std::string& mnemonic, uint32_t& lanes) {
  static const Steps steps = make_steps();
  size_t end = std::min(mnemonic.find('.'), mnemonic.size());
  const std::string root = mnemonic.substr(0, end);
  if (root == "cvta") return unary<uint64_t, Mov>;  // a single address space
  std::string name = root;
  while (end < mnemonic.size()) {
    const size_t next = std::min(mnemonic.find('.', end + 1), mnemonic.size());
    const std::string part = mnemonic.substr(end + 1, next - end - 1);
    if (part == "v2" || part == "v4")
      lanes = part == "v2" ? 2 : 4;
    else if (!is_dropped(root, part))
      name += "." + part;
    end = next;
  }
  const auto found = steps.find(name);
  return found == steps.end() ? nullptr : found->second;
}

namespace {

void run_item(const Kernel& kernel, Item& item) {
  while (!item.is_done && !item.is_waiting && !item.is_at_mma) {
    const Inst& inst = kernel.code[item.at++];
    if (inst.guard >= 0) {
      const bool holds = item.get<uint8_t>(static_cast<uint32_t>(inst.guard)) != 0;
      if (holds == inst.is_guard_negated) continue;
    }
    inst.step(item, inst);
  }
}

void begin_item(const Kernel& kernel, Item& item, const std::vector<char>& params,
                std::vector<char>& shared, const std::array<uint32_t, 12>& specials) {
  item.slots = kernel.slots;
  item.local.assign(kernel.local_size + 64, '\x7e');
  item.at = 0;
  item.is_done = kernel.code.empty();
  item.is_waiting = item.is_at_mma = false;
  item.copies.clear();
  item.copy_groups = 0;
  const auto point = [&](const std::vector<Symbol>& symbols, const char* base) {
    for (const Symbol& symbol : symbols)
      item.slots[symbol.slot] = reinterpret_cast<uint64_t>(base) + symbol.offset;
  };
  const auto align = [](char* at) {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(at) + 63) / 64 * 64);
  };
  point(kernel.params, params.data());
  point(kernel.shared, align(shared.data()));
  point(kernel.local, align(item.local.data()));
  for (size_t i = 0; i < specials.size(); ++i)
    if (kernel.specials[i]) item.slots[kernel.specials[i]] = specials[i];
}

constexpr size_t kWarp = 32;

// Runs until each item waits or is done; all items of the warp synchronise at an mma.
void run_warp(const Kernel& kernel, std::span<Item> warp) {
  for (Item& item : warp) item.is_waiting = false;
  for (;;) {
    std::vector<Item*> meeting;
    for (Item& item : warp) {
      reach().local = {item.local.data(), item.local.size()};
      run_item(kernel, item);
      if (item.is_at_mma) meeting.push_back(&item);
    }
    if (meeting.empty()) return;
    const uint32_t at = meeting[0]->at;
    const Inst& inst = kernel.code[at - 1];
    if (meeting.size() != kWarp ||
        std::ranges::any_of(meeting, [&](const Item* item) { return item->at != at; }))
      throw Fault{719, "not all of a warp reach " + inst.text};
    multiply_tiles(meeting, inst);
    for (Item* item : meeting) item->is_at_mma = false;
  }
}

void run_group(const Kernel& kernel, const Grid& grid, const std::array<uint32_t, 3>& group,
               const std::vector<char>& params, std::vector<Item>& items) {
  std::vector<char> shared(kernel.shared_size + 64, '\x7d');
  reach().shared = {shared.data(), shared.size()};
  size_t number = 0;
  for (uint32_t z = 0; z < grid.items[2]; ++z)
    for (uint32_t y = 0; y < grid.items[1]; ++y)
      for (uint32_t x = 0; x < grid.items[0]; ++x)
        begin_item(kernel, items[number++], params, shared,
                   {x, y, z, grid.items[0], grid.items[1], grid.items[2], group[0], group[1],
                    group[2], grid.groups[0], grid.groups[1], grid.groups[2]});
  for (bool any = true; any;) {
    any = false;
    for (size_t first = 0; first < items.size(); first += kWarp)
      run_warp(kernel, std::span(items).subspan(first, std::min(kWarp, items.size() - first)));
    for (const Item& item : items) any = any || !item.is_done;
  }
}

}  // namespace

void run_kernel(const Kernel& kernel, const Grid& grid, const std::vector<char>& params,
                CheckAccess access) {
  reach().device = access;
  reach().params = {params.data(), params.size()};
  std::vector<Item> items(size_t{grid.items[0]} * grid.items[1] * grid.items[2]);
  for (uint32_t z = 0; z < grid.groups[2]; ++z)
    for (uint32_t y = 0; y < grid.groups[1]; ++y)
      for (uint32_t x = 0; x < grid.groups[0]; ++x)
        run_group(kernel, grid, {x, y, z}, params, items);
}

}  // namespace plugrad::cuda_double
