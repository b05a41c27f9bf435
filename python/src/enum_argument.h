// Enums are strings in Python: reduction="mean".
#pragma once

#include "arguments.h"
#include "enums.h"

namespace plugrad::python {

template <class Enum>
struct EnumArgument {
  Enum value;
};

template <class Enum>
std::optional<EnumArgument<Enum>> enum_argument_of_object(nb::handle object) {
  if (const auto value = enum_of_object<Enum>(object)) return EnumArgument<Enum>{*value};
  return {};
}

}  // namespace plugrad::python

namespace nanobind::detail {

template <class Enum>
struct type_caster<plugrad::python::EnumArgument<Enum>>
    : ArgumentCaster<plugrad::python::EnumArgument<Enum>,
                     plugrad::python::enum_argument_of_object<Enum>> {
  static constexpr auto Name = const_name("str");
};

}  // namespace nanobind::detail
