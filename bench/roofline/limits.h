// Measures the machine's peak performance: the roof of the roofline plot.
#pragma once

namespace plugrad::bench {

/// f32 multiply-adds with the widest vectors on `threads` threads, in FLOP/s.
double peak_flops(int threads);
/// Read bandwidth of `threads` threads on arrays much larger than the caches, in bytes per second.
double read_bandwidth(int threads);

}  // namespace plugrad::bench
