// Whole training steps.
#include "bench/first_steps.h"
#include "bench/row.h"

namespace plugrad::bench {

std::vector<Row> model_rows() {
  std::vector<Row> rows = step_rows();
  rows.push_back({first_step_names(), 0, report_first_steps});
  return rows;
}

}  // namespace plugrad::bench
