// SQLite files shared by any number of processes and threads. All of them are optional: if a file
// cannot be used, calls return false and one warning gives the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace plugrad {

/// An error of SQLite; makes Database::read and write return false.
struct DatabaseError {
  int code;  // SQLITE_…
  std::string text;
};

/// A running statement. As in SQLite, parameters count from 1 and columns from 0.
class Statement {
 public:
  Statement(sqlite3* connection, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds the parameters in order. Blobs and texts must outlive the statement.
  template <class... Values>
  Statement& bind(const Values&... values) {
    int number = 0;
    (set(++number, values), ...);
    return *this;
  }
  /// Returns whether there is a row.
  bool step();
  int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;            ///< until the next step
  std::span<const std::byte> blob(int column) const;  ///< until the next step

 private:
  void set(int number, int64_t value);
  void set(int number, uint64_t value) { set(number, static_cast<int64_t>(value)); }
  void set(int number, uint32_t value) { set(number, static_cast<int64_t>(value)); }
  void set(int number, double value);
  void set(int number, std::string_view value);
  void set(int number, const std::string& value) { set(number, std::string_view(value)); }
  void set(int number, std::span<const std::byte> value);
  [[noreturn]] void fail(int code) const;

  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  struct Description {
    std::string purpose{};    // for messages, e.g. "kernel cache"
    std::string without{};    // the consequence of doing without it, for messages
    std::string schema{};     // SQL that creates missing tables
    int version = 0;          // of the schema; files of other versions are left alone
    bool is_trusted = false;  // its contents are executed: refuse a file that others can write
  };

  /// Opens the file on first use. An empty path disables the database. In the cache directory,
  /// creates a missing folder and sets any damaged file aside; elsewhere, only a former database.
  Database(std::string path, const Description& description, bool is_in_cache = true);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }

  /// Calls work(connection), which reads. On a damaged file, sets it aside and repeats the work on
  /// a new one.
  template <class Work>
  bool read(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::Read);
  }
  /// As read(), in a transaction: all writes of the work take effect, or none.
  template <class Work>
  bool write(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::Write);
  }
  /// As write(), without a warning if the file cannot be written.
  template <class Work>
  bool write_quietly(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::WriteQuietly);
  }
  /// As write_quietly(), but gives up at once while another process writes.
  template <class Work>
  bool write_if_idle(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::WriteIfIdle);
  }

 private:
  enum class Access { Read, Write, WriteQuietly, WriteIfIdle };
  using Call = void (*)(void* context, sqlite3* connection);
  friend void close_all_before_fork();
  friend void unlock_all_after_fork();

  bool run(Call call, void* context, Access access);
  bool run_once(Call call, void* context, Access access);
  bool is_usable(Access access);
  bool is_still_there() const;
  void open();
  void prepare_schema_in_turn();
  void prepare_schema();
  void close();
  bool set_aside();
  void warn_once(std::string_view text);

  const std::string path_;
  const Description description_;
  const bool is_in_cache_;
  std::mutex mutex_;
  sqlite3* connection_ = nullptr;
  uint64_t file_ = 0;  // inode of the open file
  bool is_read_only_ = false;
  bool was_warned_ = false;
};

}  // namespace plugrad
