// The process that a trace records.
#pragma once

#include <cstdint>
#include <string>

namespace plugrad::trace {

/// The first line of a trace, with its newline. Times of the trace count from `start_ns`.
std::string header_line(std::uint64_t start_ns);

/// The file of this process: each rank of a program that a launcher of an MPI started has its own,
/// rank 0 `path` itself, rank 1 `path`.rank1.
std::string path_of_rank(const std::string& path);

}  // namespace plugrad::trace
