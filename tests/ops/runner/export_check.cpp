// Writes rows as ONNX files and loads them again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "exported/round_trip.h"
#include "ops/runner/check.h"
#include "ops/runner/inputs.h"

namespace plugrad::ops {

void check_exported(const Entry& entry) {
  const Case& row = entry.row;
  const In inputs = inputs_of(entry, input_values(entry), false);
  const std::string name = fmt::format("{}.{}", entry.family, row.name);
  const std::vector<Tensor> wanted = row.function(inputs).tensors;
  const exported::Folder folder;
  std::vector<Tensor> got;
  try {
    got = folder.round_trip(name, [&](const In& x) { return row.function(x).tensors; }, inputs);
  } catch (const Error& error) {
    const bool reads =
        std::string_view(error.what()).find("a value is asked for") != std::string::npos;
    if (error.kind() != ErrorKind::Unsupported && !reads) throw;
    GTEST_SKIP() << error.what();
  }
  std::vector<std::vector<double>> errors;
  for (size_t i = 0; i < wanted.size(); ++i) {
    errors.push_back(wanted[i].to_vector<double>());
    for (double& value : errors.back())
      value = is_float(wanted[i].dtype()) && std::isfinite(value)
                  ? row.checks.forward.absolute + row.checks.forward.relative * std::fabs(value)
                  : 0;
    EXPECT_EQ(exported::difference(got[i], wanted[i], errors.back()), "") << "output " << i;
  }
  folder.keep(name, inputs, wanted, errors);
}

}  // namespace plugrad::ops
