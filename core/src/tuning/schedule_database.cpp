#include "tuning/schedule_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/storage/disk_cache.h"

namespace plugrad::tuning {
namespace {

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS schedule (version INTEGER, device TEXT, compiler TEXT, kernel "
    "TEXT, "
    "family TEXT, sizes TEXT, width INTEGER, tried INTEGER, seconds REAL, first_seconds REAL, "
    "list TEXT, PRIMARY KEY (kernel, device, compiler, version));"
    "CREATE INDEX IF NOT EXISTS by_family ON schedule (family);"
    "CREATE TABLE IF NOT EXISTS imported (path TEXT PRIMARY KEY)";

constexpr const char* kColumns =
    "version, device, compiler, kernel, family, sizes, width, tried, seconds, first_seconds, list";

constexpr uint64_t kLargestText = uint64_t{256} << 20;

Database::Description description() {
  return {.purpose = "search database",
          .without = "what searches find is lost with the process",
          .schema = kSchema,
          .version = 1,
          .is_trusted = false};
}

// Distance of two shapes: the sum over axes of |log2 of the ratio|.
double distance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i)
    total += std::abs(std::log2(static_cast<double>(a[i])) - std::log2(static_cast<double>(b[i])));
  return total;
}

// Converts a row to a text line and parses that, which checks every field.
std::optional<ScheduleRecord> record_of(const Statement& row) {
  ScheduleRecord r;
  r.version = static_cast<uint32_t>(row.integer(0));
  r.device = row.text(1);
  r.compiler = row.text(2);
  r.kernel = row.text(3);
  r.family = row.text(4);
  r.width = static_cast<uint32_t>(row.integer(6));
  r.tried = static_cast<uint32_t>(row.integer(7));
  r.seconds = row.real(8);
  r.first_seconds = row.real(9);
  r.list = row.text(10);
  if (!read_sizes(row.text(5), r.sizes) || !is_time(r.seconds) || !is_time(r.first_seconds))
    return std::nullopt;
  return r;
}

void insert(sqlite3* connection, const ScheduleRecord& r) {
  const std::string sizes = fmt::format("{}", fmt::join(r.sizes, ","));
  Statement(connection,
            fmt::format("INSERT INTO schedule ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                        "ON CONFLICT DO UPDATE SET family=excluded.family, sizes=excluded.sizes, "
                        "width=excluded.width, tried=excluded.tried, seconds=excluded.seconds, "
                        "first_seconds=excluded.first_seconds, list=excluded.list",
                        kColumns))
      .bind(r.version, r.device, r.compiler, r.kernel, r.family, sizes, r.width, r.tried, r.seconds,
            r.first_seconds, r.list)
      .step();
}

}  // namespace

ScheduleDatabase::ScheduleDatabase(std::string path, std::string text, bool is_in_cache)
    : database_(std::move(path), description(), is_in_cache), text_(std::move(text)) {}

void ScheduleDatabase::import_once() {
  std::call_once(imported_, [this] {
    if (text_.empty() || !is_schedule_text(text_)) return;
    bool is_done = false;
    database_.read([&](sqlite3* connection) {
      Statement done(connection, "SELECT 1 FROM imported WHERE path=?");
      is_done = done.bind(text_).step();
    });
    if (is_done) return;
    const auto bytes = read_file(text_, kLargestText);
    if (!bytes)
      return log_warning("search database {}: {} cannot be imported: {}", path(), text_,
                         file_error_text(errno));
    const ScheduleText found =
        parse_records({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    const bool is_kept = database_.write([&](sqlite3* connection) {
      for (const ScheduleRecord& record : found.records) insert(connection, record);
      Statement(connection, "INSERT OR IGNORE INTO imported VALUES (?)").bind(text_).step();
    });
    if (!is_kept) return;
    log_warning("search database {}: imported {} results of {}{}", path(), found.records.size(),
                text_,
                found.damaged == 0
                    ? ""
                    : fmt::format("; {} lines are damaged or of another version of plugrad and are "
                                  "ignored, the first is line {}",
                                  found.damaged, found.first_damaged));
  });
}

std::optional<ScheduleRecord> ScheduleDatabase::find(const ScheduleRecord& wanted) {
  import_once();
  std::optional<ScheduleRecord> found;
  database_.read([&](sqlite3* connection) {
    Statement select(connection,
                     fmt::format("SELECT {} FROM schedule WHERE kernel=? AND device=? AND "
                                 "compiler=? AND version=?",
                                 kColumns));
    if (select.bind(wanted.kernel, wanted.device, wanted.compiler, wanted.version).step())
      found = record_of(select);
  });
  return found;
}

std::vector<ScheduleRecord> ScheduleDatabase::near(const ScheduleRecord& wanted, size_t most) {
  import_once();
  std::vector<ScheduleRecord> found;
  database_.read([&](sqlite3* connection) {
    Statement select(
        connection,
        fmt::format("SELECT {} FROM schedule WHERE family=? ORDER BY rowid DESC", kColumns));
    select.bind(wanted.family);
    while (select.step())
      if (auto record = record_of(select); record && record->sizes.size() == wanted.sizes.size())
        found.push_back(std::move(*record));
  });
  std::ranges::stable_sort(found, {}, [&](const ScheduleRecord& record) {
    return std::tuple(record.device != wanted.device, distance(record.sizes, wanted.sizes));
  });
  std::vector<ScheduleRecord> out;
  for (ScheduleRecord& record : found)
    if (out.size() < most &&
        std::ranges::find(out, record.list, &ScheduleRecord::list) == out.end())
      out.push_back(record);
  return out;
}

bool ScheduleDatabase::add(const ScheduleRecord& record) {
  import_once();
  return database_.write([&](sqlite3* connection) { insert(connection, record); });
}

bool ScheduleDatabase::add_quietly(const ScheduleRecord& record) {
  import_once();
  return database_.write_quietly([&](sqlite3* connection) { insert(connection, record); });
}

bool ScheduleDatabase::is_empty() {
  import_once();
  bool has_any = false;
  database_.read([&](sqlite3* connection) {
    has_any = Statement(connection, "SELECT 1 FROM schedule LIMIT 1").step();
  });
  return !has_any;
}

std::vector<ScheduleRecord> ScheduleDatabase::all() {
  import_once();
  std::vector<ScheduleRecord> out;
  database_.read([&](sqlite3* connection) {
    Statement select(connection, fmt::format("SELECT {} FROM schedule ORDER BY rowid", kColumns));
    while (select.step())
      if (auto record = record_of(select)) out.push_back(std::move(*record));
  });
  return out;
}

ScheduleDatabase& schedule_database() {
  static std::mutex mutex;
  static auto* open =
      new std::map<std::string, std::unique_ptr<ScheduleDatabase>>;  // used until exit
  const std::string named = settings().schedule_database, cache = cache_directory();
  std::string path = named, text;
  if (named.empty() && !cache.empty()) {
    path = cache + "/search.db";
    text = cache + "/search.tsv";
  } else if (is_schedule_text(named)) {
    path = named + ".db";
    text = named;
  }
  const std::lock_guard lock(mutex);
  std::unique_ptr<ScheduleDatabase>& db = (*open)[path];
  if (!db) db = std::make_unique<ScheduleDatabase>(path, text, named.empty());
  return *db;
}

}  // namespace plugrad::tuning
