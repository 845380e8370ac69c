#include "sweep/sqlite.h"

#include <sqlite3.h>

#include <stdexcept>

#include "contraflow/error.h"

namespace contraflow::sweep {

namespace {

constexpr int kBusyMilliseconds = 60'000;

}  // namespace

Connection::Connection(const std::string& path, Access access) : path_(path) {
    // A reader, too, must be able to roll back what a killed writer left half-done.
    const int flags = access == Access::Read ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    // A name of its own making (":memory:", "") is a file like any other here.
    const std::string file = path.rfind('/', 0) == 0 ? path : "./" + path;
    try {
        check(sqlite3_open_v2(file.c_str(), &handle_, flags, nullptr));
    } catch (...) {
        sqlite3_close(handle_);
        throw;
    }
    sqlite3_busy_timeout(handle_, kBusyMilliseconds);
    if (access == Access::Read) {
        execute("PRAGMA query_only = 1");
    }
}

Connection::~Connection() {
    sqlite3_close(handle_);
}

void Connection::check(int code) const {
    switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_ROW:
        case SQLITE_DONE:
            return;
        case SQLITE_CANTOPEN:
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT:
        case SQLITE_READONLY:
            throw ConfigError(path_ + ": " + (handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_)) +
                              "; expected a sweep's database, or a new name in a folder that can be written to");
        case SQLITE_BUSY:
            throw std::runtime_error(path_ + ": another process keeps the database locked");
        case SQLITE_FULL:
        case SQLITE_IOERR:
            throw std::runtime_error(path_ + ": " + sqlite3_errmsg(handle_) +
                                     "; what was saved before stays, and the same command goes on from there");
        default:
            throw std::runtime_error(path_ + ": " + sqlite3_errmsg(handle_));
    }
}

void Connection::execute(const char* sql) {
    check(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr));
}

Statement::Statement(Connection& connection, const char* sql) : connection_(connection) {
    connection_.check(sqlite3_prepare_v2(connection.handle_, sql, -1, &handle_, nullptr));
}

Statement::~Statement() {
    sqlite3_finalize(handle_);
}

Statement& Statement::bind(int parameter, const std::string& text) {
    connection_.check(sqlite3_bind_text64(handle_, parameter, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
    return *this;
}

Statement& Statement::bind(int parameter, std::int64_t value) {
    connection_.check(sqlite3_bind_int64(handle_, parameter, value));
    return *this;
}

Statement& Statement::bind(int parameter, double value) {
    connection_.check(sqlite3_bind_double(handle_, parameter, value));
    return *this;
}

Statement& Statement::bind_null(int parameter) {
    connection_.check(sqlite3_bind_null(handle_, parameter));
    return *this;
}

bool Statement::step() {
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) {
        return true;
    }
    sqlite3_reset(handle_);
    connection_.check(code);
    return false;
}

void Statement::run() {
    while (step()) {
    }
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(handle_, column);
}

double Statement::real(int column) const {
    return sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
    const unsigned char* text = sqlite3_column_text(handle_, column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
    return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), size);
}

Transaction::~Transaction() {
    if (open_) {
        try {
            connection_.execute("ROLLBACK");
        } catch (const std::exception&) {
            // The error that led here may have rolled back already.
        }
    }
}

void Transaction::commit() {
    connection_.execute("COMMIT");
    open_ = false;
}

}  // namespace contraflow::sweep
