// Associativity of integers and bools, which wrap: constants move outward and merge, equal terms
// merge.
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// clang-format off
constexpr Rule kAssociativity[] = {
    rule("add-constants",  (x + c0) + c1,         x + (c0 + c1),     when(is_int(x))),
    rule("mul-constants",  (x * c0) * c1,         x * (c0 * c1),     when(is_int(x))),
    rule("and-constants",  (x & c0) & c1,         x & (c0 & c1)),
    rule("or-constants",   (x | c0) | c1,         x | (c0 | c1)),
    rule("xor-constants",  (x ^ c0) ^ c1,         x ^ (c0 ^ c1)),
    rule("max-constants",  max(max(x, c0), c1),   max(x, max(c0, c1))),
    rule("add-outward",    (x + c0) + y,          (x + y) + c0,      when(is_int(x))),
    rule("mul-outward",    (x * c0) * y,          (x * y) * c0,      when(is_int(x))),
    rule("add-self",       x + x,                 x * 2,             when(is_int(x))),
    rule("add-term",       x * c0 + x,            x * (c0 + 1),      when(is_int(x))),
    rule("add-terms",      x * c0 + x * c1,       x * (c0 + c1),     when(is_int(x))),
    rule("add-far-self",   (y + x) + x,           y + x * 2,         when(is_int(x))),
    rule("add-far-term",   (y + x * c0) + x,      y + x * (c0 + 1),  when(is_int(x))),
    rule("add-far-terms",  (y + x * c0) + x * c1, y + x * (c0 + c1), when(is_int(x))),
    rule("add-near-term",  (y + x) + x * c0,      y + x * (c0 + 1),  when(is_int(x))),
    rule("distribute",     (x + c0) * c1,         x * c1 + c0 * c1,  when(is_int(x))),
    rule("distribute-sum", (x + y) * c0,          x * c0 + y * c0,   when(is_index(x))),
};
// clang-format on
}  // namespace

std::span<const Rule> associativity_rules() {
  return kAssociativity;
}

}  // namespace plugrad
