// A spec as an argument: a ShardSpec, a tuple or list of str and None, or None.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "plugrad/sharding.h"

namespace plugrad::python {

struct SpecArgument {
  ShardSpec spec;  // of None: every device has all of the tensor
};
/// Errors: User (TypeError) for other objects.
std::optional<SpecArgument> spec_of_object(nb::handle object);
/// Errors: User (TypeError) for an item that is neither a str nor None.
std::vector<std::string> dims_of_object(nb::handle object);

}  // namespace plugrad::python

namespace nanobind::detail {

template <>
struct type_caster<plugrad::python::SpecArgument>
    : ArgumentCaster<plugrad::python::SpecArgument, plugrad::python::spec_of_object> {
  static constexpr auto Name = const_name("SpecLike | None");
};

}  // namespace nanobind::detail
