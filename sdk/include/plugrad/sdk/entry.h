// SPDX-License-Identifier: Apache-2.0
// What every plugin does with a hello, with query_interface and with the question for a counter.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {

// The lowest host minor that has all the SDK uses. A plugin that uses more says so itself.
inline constexpr uint32_t kLowestHostMinor = 0;

// Stamps the answer, and throws StatusError (NEED_NEWER_HOST) where the host is older than
// `lowest_host_minor`.
void answer_hello(pgr_hello* hello, uint32_t lowest_host_minor, std::string_view plugin_name);

// Gives the table of `name`. Throws StatusError (UNSUPPORTED) where none has it; a NULL table is
// not offered either.
using NamedTable = std::pair<std::string_view, const void*>;
void answer_query(const pgr_string* name, std::initializer_list<NamedTable> tables,
                  std::string_view plugin_name, const void** out_table);

// Gives the counter of this index. Throws StatusError (NOT_FOUND) where there are fewer. The texts
// live as long as the plugin.
struct NamedCounter {
  const char *name, *unit;
  uint64_t value;
};
void answer_counter(std::initializer_list<NamedCounter> counters, uint32_t index, pgr_counter* out);

}  // namespace plugrad::sdk
