// What the machine can do at most: the roof of the roofline plot.
#pragma once

namespace plugrad::bench {

/// Multiply-adds of f32 by the widest vectors on `threads` threads, in FLOP/s.
double peak_flops(int threads);
/// Bytes a second that `threads` threads read of arrays far larger than the caches.
double read_bandwidth(int threads);

}  // namespace plugrad::bench
