// Work that succeeds in all ranks or fails in all.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::nn {

/// Its number among the processes of the program, and how many there are: 0 of 1 without init().
struct Rank {
  size_t number = 0, count = 1;
};
Rank this_rank();

/// Runs `work`, and returns what it returns in each rank. Errors: that of the lowest rank that
/// fails, with its number, in all ranks; those of a collective.
std::vector<std::vector<std::byte>> results_of_all_ranks(
    const std::string& function, const std::function<std::vector<std::byte>()>& work);
/// The same of a work that may take longer in some ranks than the deadline of collectives: it runs
/// in a thread, and ranks tell each other in short turns that they are at work.
std::vector<std::vector<std::byte>> results_of_slow_work(
    const std::string& function, const std::function<std::vector<std::byte>()>& work);
/// Of a work without a result.
void in_all_ranks(const std::string& function, const std::function<void()>& work);

}  // namespace plugrad::nn
