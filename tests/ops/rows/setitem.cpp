// Assignment through an index.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kSetitemRows("index", {
    {"set_number", "(lambda a: (a.__setitem__(2, y), a)[1])(x.clone())", {{{4, 5, 6}}, {{5, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[2] = x[1]; return a; }},
    {"set_box", "(lambda a: (a.__setitem__((slice(1, 3), 0), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{2, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{Slice(1, 3), 0}] = x[1]; return a; }},
    {"set_steps", "(lambda a: (a.__setitem__((slice(None, None, 2), Ellipsis, slice(1, 6, 3)), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{2, 5, 2}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{Slice({}, {}, 2), kEllipsis, Slice(1, 6, 3)}] = x[1]; return a; }},
    {"set_broadcast", "(lambda a: (a.__setitem__((slice(None), 1), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{Slice(), 1}] = x[1]; return a; }},
    {"set_new_axis", "(lambda a: (a.__setitem__((0, None), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{1, 5, 1}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{0, kNewAxis}] = x[1]; return a; }},
    {"set_value", "(lambda a: (a.__setitem__((slice(-2, None),), 3.5), a)[1])(x.clone())", {{{4, 5, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[Slice(-2, {})] = 3.5; return a; }},
    {"set_nothing", "(lambda a: (a.__setitem__((slice(3, 1),), 3.5), a)[1])(x.clone())", {{{4, 5, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[Slice(3, 1)] = 3.5; return a; }},
    {"set_all", "(lambda a: (a.__setitem__(Ellipsis, y), a)[1])(x.clone())", {{{4, 5, 6}}, {{6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[kEllipsis] = x[1]; return a; }, kForwardOnly},
    {"set_add", "(lambda a: (a.__setitem__((slice(1, 3), 2), a[1:3, 2] + y), a)[1])(x.clone())", {{{4, 5, 6}}, {{2, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{Slice(1, 3), 2}] += x[1]; return a; }},
    {"set_of_itself", "(lambda a: (a.__setitem__((slice(0, 2),), x[2:4] * x[0:2]), a)[1])(x.clone())", {{{4, 5, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[Slice(0, 2)] = a[Slice(2, 4)] * a[Slice(0, 2)]; return a; }},
    {"set_chain", "(lambda a: (a[1][2].__setitem__(slice(0, 3), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{3}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[1][2][Slice(0, 3)] = x[1]; return a; }},
    {"set_places", "(lambda a: (a.__setitem__(torch.tensor([3, 0]), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{2, 5, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[Tensor::from({3, 0})] = x[1]; return a; }},
    {"set_places_two", "(lambda a: (a.__setitem__((torch.tensor([3, 0, 1]), slice(None), torch.tensor([5, 0, 5])), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{3, 5}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{Tensor::from({3, 0, 1}), Slice(), Tensor::from({-1, 0, 5})}] = x[1]; return a; }},
    {"set_places_side_by_side", "(lambda a: (a.__setitem__((slice(1, 3), torch.tensor([[3], [0]]), torch.tensor([5, 0])), y), a)[1])(x.clone())", {{{4, 5, 6}}, {{2, 2}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{Slice(1, 3), Tensor::from({3, 0}, {2, 1}), {5, 0}}] = x[1]; return a; }},
    {"set_places_value", "(lambda a: (a.__setitem__((0, torch.tensor([3, 0])), 2.5), a)[1])(x.clone())", {{{4, 5, 6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[{0, {3, 0}}] = 2.5; return a; }},
    {"set_twice", "(lambda a: ((a.__setitem__(0, y), a.__setitem__((slice(None), 0), y)), a)[1])(x.clone())", {{{4, 5, 6}}, {{6}}}, [](const In& x) { Tensor a = x[0] * 1.0; a[0] = x[1]; a[{Slice(), 0}] = x[1]; return a; }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
