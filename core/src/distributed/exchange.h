// Gives every rank a few bytes of all others: whether their work succeeded, for example.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace plugrad::distributed {

/// The bytes of every rank, which may differ in number, in the order of the ranks. In a program of
/// one process, the own ones. `purpose` names the call in errors. Errors: those of Backend::wait.
std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> own,
                                             const std::string& purpose);

}  // namespace plugrad::distributed
