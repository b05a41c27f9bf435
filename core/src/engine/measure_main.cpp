// plugrad-measure: a program of its own, so that a search survives the kernels that it tries.
#include "engine/measure_worker.h"

int main() {
  return plugrad::engine::serve_measurements();
}
