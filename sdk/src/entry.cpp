#include "plugrad/sdk/entry.h"

namespace plugrad::sdk {

void answer_hello(pgr_hello* hello, uint32_t lowest_host_minor, std::string_view plugin_name) {
  require(hello != nullptr && hello->host != nullptr, PGR_STATUS_INVALID_ARGUMENT,
          "the hello or its host table is NULL");
  PGR_HELLO_ANSWER(hello, lowest_host_minor);
  check_chain(hello->next);
  require(hello->host->api_minor >= lowest_host_minor, PGR_STATUS_NEED_NEWER_HOST,
          std::string(plugin_name) + " needs a host of API " + std::to_string(PGR_API_MAJOR) + "." +
              std::to_string(lowest_host_minor) + " or newer");
}

void answer_query(const pgr_string* name, std::initializer_list<NamedTable> tables,
                  std::string_view plugin_name, const void** out_table) {
  require(out_table != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_table is NULL");
  for (const NamedTable& entry : tables)
    if (entry.first == to_view(name) && entry.second) {
      *out_table = entry.second;
      return;
    }
  throw StatusError(PGR_STATUS_UNSUPPORTED,
                    std::string(plugin_name) + " does not offer " + std::string(to_view(name)));
}

void answer_counter(std::initializer_list<NamedCounter> counters, uint32_t index,
                    pgr_counter* out) {
  require(index < counters.size(), PGR_STATUS_NOT_FOUND,
          "no counter " + std::to_string(index) + "; there are " + std::to_string(counters.size()));
  const NamedCounter& named = counters.begin()[index];
  pgr_counter own;
  PGR_INIT(own, COUNTER);
  own.name = to_pgr(named.name);
  own.unit = to_pgr(named.unit);
  own.value = named.value;
  fill(out, own);
}

}  // namespace plugrad::sdk
