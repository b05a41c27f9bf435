// Stores search results in a database shared by any number of processes. Readers must not trust a
// result: they use a schedule only if it is legal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/storage/database.h"
#include "tuning/schedule_record.h"

namespace plugrad::tuning {

class ScheduleDatabase {
 public:
  /// `text`: a text file (tuning/schedule_record.h) to import once; empty: none.
  explicit ScheduleDatabase(std::string path, std::string text = "", bool is_in_cache = false);

  const std::string& path() const { return database_.path(); }
  /// The latest record with the key of `wanted`.
  std::optional<ScheduleRecord> find(const ScheduleRecord& wanted);
  /// At most `most` records of the same family, nearest sizes first, then this device before
  /// others.
  std::vector<ScheduleRecord> near(const ScheduleRecord& wanted, size_t most);
  /// Returns whether it was stored. Warns once if the file cannot be written.
  bool add(const ScheduleRecord& record);
  /// As add(), without the warning.
  bool add_quietly(const ScheduleRecord& record);
  bool is_empty();
  /// One record for each key, in the order of first appearance.
  std::vector<ScheduleRecord> all();

 private:
  void import_once();

  Database database_;
  const std::string text_;
  std::once_flag imported_;
};

/// The database of PLUGRAD_SEARCH_DB, else search.db in the cache directory; disabled without one.
/// A text file of plugrad 1.0 (search.tsv in the cache directory, or FILE if the setting names one)
/// is imported once; the database of FILE is FILE.db.
ScheduleDatabase& schedule_database();

}  // namespace plugrad::tuning
