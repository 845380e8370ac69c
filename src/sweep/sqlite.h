// The few SQLite calls that the sweep's database needs.
#pragma once

#include <cstdint>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace contraflow::sweep {

class Statement;

// An open database file. Failures throw: ConfigError when the file cannot be opened or is no database,
// std::runtime_error otherwise (no space, another process holds it for longer than a minute).
class Connection {
public:
    enum class Access { Read, Write };

    Connection(const std::string& path, Access access);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void execute(const char* sql);  // statements without result
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    friend class Statement;
    void check(int code) const;

    std::string path_;
    sqlite3* handle_ = nullptr;
};

// A prepared statement, used for any number of executions.
class Statement {
public:
    Statement(Connection& connection, const char* sql);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    // Parameters from 1.
    Statement& bind(int parameter, const std::string& text);
    Statement& bind(int parameter, std::int64_t value);
    Statement& bind(int parameter, double value);
    Statement& bind_null(int parameter);

    bool step();  // true: a row is there; false: done, and ready to be bound again
    void run();   // to the end

    // Columns from 0 of the current row.
    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const;
    [[nodiscard]] std::string text(int column) const;  // NULL: ""

private:
    Connection& connection_;
    sqlite3_stmt* handle_ = nullptr;
};

// Everything until commit() happens, or nothing. Other writers wait.
class Transaction {
public:
    explicit Transaction(Connection& connection) : connection_(connection) { connection_.execute("BEGIN IMMEDIATE"); }
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    void commit();

private:
    Connection& connection_;
    bool open_ = true;
};

}  // namespace contraflow::sweep
