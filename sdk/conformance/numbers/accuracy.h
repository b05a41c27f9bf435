// Required accuracy of each op on each dtype: one table for the tests and for docs/kernel-ir.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "plugrad/plugin_api/device.h"

namespace plugrad::conformance {

enum class Accuracy : uint8_t {
  Exact,     // integers, compares, moves, casts, max: exact, or rounded as a cast
  Rounded,   // to nearest, ties to even
  Division,  // within the device's `division` ulp; 0: same as Rounded
  Ulp,       // within `ulp` units in the last place of the exact value
};

struct AccuracyRow {
  uint32_t op;
  Accuracy kind;
  double f16, bf16, f32, f64;  // ulp limits
};

// One row per ALU op of kernel_ops.h.
std::span<const AccuracyRow> accuracy_table();
const AccuracyRow& accuracy_of(uint32_t op);

// Maximum error in ulp on a device; 0 requires the expected bits.
double tolerance_ulp(uint32_t op, uint32_t dtype, uint32_t division);

// "rounded", "4 ulp", for the documents; `op` on floats.
std::string accuracy_text(uint32_t op, uint32_t dtype);

}  // namespace plugrad::conformance
