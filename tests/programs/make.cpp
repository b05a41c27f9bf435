// Makes random programs: operations are tried in the pure world, and kept if they are valid.
#include <fmt/format.h>

#include "plugrad/error.h"
#include "programs/operations.h"
#include "programs/perform.h"
#include "programs/run.h"

namespace plugrad::programs {
namespace {

struct Family {
  const char* name;
  uint32_t weight;
};
constexpr Family kFamilies[] = {
    {"leaf", 12},   {"unary", 14},   {"cast", 4},   {"binary", 16}, {"movement", 14},
    {"join", 4},    {"index", 6},    {"reduce", 9}, {"scan", 4},    {"matmul", 4},
    {"network", 5}, {"gradient", 4}, {"change", 6}, {"alias", 2},   {"compute", 6},
};

const Operation& draw_operation(std::mt19937_64& random) {
  uint32_t total = 0;
  for (const Family& family : kFamilies) total += family.weight;
  uint64_t at = random() % total;
  std::string_view chosen;
  for (const Family& family : kFamilies) {
    if (at < family.weight) {
      chosen = family.name;
      break;
    }
    at -= family.weight;
  }
  std::vector<const Operation*> fitting;
  for (const Operation* one : operations())
    if (one->family == chosen && std::string_view(one->name) != "given_leaf")
      fitting.push_back(one);
  return *fitting[random() % fitting.size()];
}

}  // namespace

Program make_program(uint64_t seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 1);
  Program program{
      seed, random() % 5 < 3 ? "REFERENCE" : "CPU", random() % 6 == 0, random() % 2 == 0, {}, {}};
  World world(true);
  const auto wanted = static_cast<size_t>(3 + random() % 22);
  for (int id = 0, tries = 0; program.steps.size() < wanted && tries < 200; ++tries) {
    Step step{id, id < 2 ? &operation("leaf") : &draw_operation(random), {}, {}};
    if (!perform(world, step, &random)) continue;
    program.steps.push_back(step);
    ++id;
  }
  return program;
}

}  // namespace plugrad::programs
