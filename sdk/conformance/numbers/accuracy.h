// How exact each op must be on each dtype: one table, which the tests judge by and which
// docs/kernel-ir.md prints.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "plugrad/plugin_api/device.h"

namespace plugrad::conformance {

enum class Accuracy : uint8_t {
  Exact,     // integers, compares, moves, casts, max: nothing is rounded, or rounded as a cast is
  Rounded,   // to nearest, ties to even
  Division,  // within the device's `division` ulp; 0: Rounded
  Ulp,       // within `ulp` units in the last place of the exact value
};

struct AccuracyRow {
  uint32_t op;
  Accuracy kind;
  double f16, bf16, f32, f64;  // of Ulp
};

// One row for each ALU op of kernel_ops.h.
std::span<const AccuracyRow> accuracy_table();
const AccuracyRow& accuracy_of(uint32_t op);

// Largest error in ulp on a device; 0 where the bits must be the expected ones.
double tolerance_ulp(uint32_t op, uint32_t dtype, uint32_t division);

// "rounded", "4 ulp", for the documents; `op` on floats.
std::string accuracy_text(uint32_t op, uint32_t dtype);

}  // namespace plugrad::conformance
