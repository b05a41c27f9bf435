// Steps of loads, stores, asynchronous copies, atomic sums, and register packing.
#include <algorithm>
#include <atomic>
#include <bit>
#include <type_traits>

#include "double/ptx_steps.h"

namespace plugrad::cuda_double {
namespace {

void check_access(const char* at, uint64_t size) {
  const Reach& own = reach();
  for (const Own& memory : {own.params, own.shared, own.local})
    if (at >= memory.begin && at + size <= memory.begin + memory.size) return;
  own.device(at, size);
}

char* address(Item& item, uint32_t slot, const Inst& inst, uint64_t size, uint64_t align) {
  const uint64_t at = item.slots[slot] + static_cast<uint64_t>(inst.offset);
  if (at % align != 0) throw Fault{716, "a misaligned address in " + inst.text};
  char* pointer = reinterpret_cast<char*>(at);
  check_access(pointer, size);
  return pointer;
}
template <typename T>
void load(Item& item, const Inst& inst) {
  const char* from =
      address(item, inst.from[0], inst, sizeof(T) * inst.lanes, sizeof(T) * inst.lanes);
  for (uint32_t lane = 0; lane < inst.lanes; ++lane) {
    T value;
    std::memcpy(&value, from + lane * sizeof(T), sizeof value);
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      item.slots[inst.to[lane]] = static_cast<uint64_t>(int64_t{value});
    else
      item.set<T>(inst.to[lane], value);
  }
}
template <typename T>
void store(Item& item, const Inst& inst) {
  char* to = address(item, inst.to[0], inst, sizeof(T) * inst.lanes, sizeof(T) * inst.lanes);
  for (uint32_t lane = 0; lane < inst.lanes; ++lane) {
    const T value = item.get<T>(inst.from[lane]);
    std::memcpy(to + lane * sizeof(T), &value, sizeof value);
  }
}
template <typename T>
void atomic_add(Item& item, const Inst& inst) {
  auto* at = reinterpret_cast<T*>(address(item, inst.to[0], inst, sizeof(T), sizeof(T)));
  const T value = item.get<T>(inst.from[0]);
  item.set<T>(inst.to[1], std::atomic_ref<T>(*at).fetch_add(value));
}

void start_copy(Item& item, const Inst& inst) {
  const auto bytes = item.get<uint32_t>(inst.from[1]), read = item.get<uint32_t>(inst.from[2]);
  char* to = address(item, inst.to[0], inst, bytes, bytes);
  if (to < reach().shared.begin || to >= reach().shared.begin + reach().shared.size)
    throw Fault{717, "no shared memory in " + inst.text};
  const char* from = read ? address(item, inst.from[0], inst, bytes, bytes) : nullptr;
  std::memset(to, 0x7b, bytes);
  item.copies.push_back({to, from, bytes, read, item.copy_groups});
}
void commit_copies(Item& item, const Inst&) {
  ++item.copy_groups;
}
void wait_for_copies(Item& item, const Inst& inst) {
  const uint64_t left = item.slots[inst.from[0]];
  const uint64_t done = item.copy_groups - std::min(left, item.copy_groups);
  std::erase_if(item.copies, [&](const Copy& copy) {
    if (copy.group >= done) return false;
    std::memset(copy.to, 0, copy.bytes);
    if (copy.read) std::memcpy(copy.to, copy.from, copy.read);
    return true;
  });
}

template <typename Whole, typename Part>
void pack(Item& item, const Inst& inst) {
  Part parts[sizeof(Whole) / sizeof(Part)];
  for (size_t i = 0; i < std::size(parts); ++i) parts[i] = item.get<Part>(inst.from[i]);
  item.set(inst.to[0], std::bit_cast<Whole>(parts));
}
template <typename Whole, typename Part>
void unpack(Item& item, const Inst& inst) {
  const Whole whole = item.get<Whole>(inst.from[0]);
  for (size_t i = 0; i < sizeof(Whole) / sizeof(Part); ++i) {
    Part part;
    std::memcpy(&part, reinterpret_cast<const char*>(&whole) + i * sizeof part, sizeof part);
    if (inst.to[i]) item.set(inst.to[i], part);
  }
}

}  // namespace

void add_memory(Steps& steps) {
  const auto access = [&]<typename T>(const std::string& type, T) {
    steps["ld" + type] = load<T>;
    steps["st" + type] = store<T>;
  };
  each_integer(access), each_bits(access), each_float(access), each_small(access);
  const auto atomic = [&]<typename T>(const std::string& type, T) {
    if constexpr (sizeof(T) > 2) steps["red.add" + type] = steps["atom.add" + type] = atomic_add<T>;
  };
  each_integer(atomic), each_float(atomic);
  for (const char* cache : {"ca", "cg"})
    steps["cp.async." + std::string(cache) + ".shared.global"] = start_copy;
  steps["cp.async.commit_group"] = commit_copies;
  steps["cp.async.wait_group"] = wait_for_copies;
  steps["pack2.b64"] = pack<uint64_t, uint32_t>;
  steps["unpack2.b64"] = unpack<uint64_t, uint32_t>;
  steps["pack2.b32"] = pack<uint32_t, uint16_t>;
  steps["unpack2.b32"] = unpack<uint32_t, uint16_t>;
  steps["pack4.b64"] = pack<uint64_t, uint16_t>;
  steps["unpack4.b64"] = unpack<uint64_t, uint16_t>;
}

Reach& reach() {
  thread_local Reach own;
  return own;
}

}  // namespace plugrad::cuda_double
