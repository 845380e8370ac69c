// The sweep's database after a process was killed while it wrote: a reader sees what was saved before.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "support/temporary_folder.h"
#include "sweep/database.h"
#include "sweep/sqlite.h"

using namespace contraflow::sweep;
using contraflow::test::TemporaryFolder;

namespace {

using Access = Connection::Access;

// Ends without closing anything in the middle of a transaction that has already changed the file.
[[noreturn]] void write_half_a_transaction(const std::string& path) {
    Connection connection(path, Access::Write);
    connection.execute("PRAGMA cache_size = 1");  // pages: everything else is spilled to the file
    connection.execute("BEGIN IMMEDIATE");
    connection.execute("UPDATE rows SET text = hex(zeroblob(600))");
    _exit(0);
}

std::string first_text(Connection& connection) {
    Statement statement(connection, "SELECT text FROM rows LIMIT 1");
    REQUIRE(statement.step());
    return statement.text(0);
}

}  // namespace

TEST_CASE("a reader rolls back what a killed writer left half-done") {
    const TemporaryFolder temp;
    const std::string path = temp.file("db");
    {
        Connection connection(path, Access::Write);
        connection.execute("CREATE TABLE rows(text TEXT)");
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
            "INSERT INTO rows SELECT 'before' FROM n");
    }
    const auto size_before = std::filesystem::file_size(path);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        write_half_a_transaction(path);
    }
    waitpid(child, nullptr, 0);
    REQUIRE(std::filesystem::exists(path + "-journal"));
    REQUIRE(std::filesystem::file_size(path) > size_before);  // it did reach the file

    Connection reader(path, Access::Read);
    CHECK(first_text(reader) == "before");
    CHECK(std::filesystem::file_size(path) == size_before);
    CHECK_THROWS(reader.execute("DELETE FROM rows"));
}

TEST_CASE("points are claimed by turns, whatever other processes have claimed, and read in their order") {
    const TemporaryFolder temp;
    const Points points = cross_product({"vector.lanes=16,32", "engine.rows=1,2,3"});
    const SweepIdentity identity{"1", "{}", "0", "{}", points.keys};
    const auto open = [&] { return Database::open_for_sweep(temp.file("db"), identity, points, {}, false); };
    Database one = open();
    Database other = open();
    const auto claim = [](Database& database, std::size_t want) {
        std::string claims;
        for (const Claim& claimed : database.exchange({}, want)) {
            claims += (claims.empty() ? "" : " ") + claimed.keys;
        }
        return claims;
    };
    CHECK(claim(one, 2) == "{\"engine.rows\":1,\"vector.lanes\":16} {\"engine.rows\":1,\"vector.lanes\":32}");
    CHECK(claim(other, 1) == "{\"engine.rows\":2,\"vector.lanes\":16}");
    CHECK(claim(one, 1) == "{\"engine.rows\":2,\"vector.lanes\":32}");
    std::vector<std::int64_t> order;
    std::string first_lanes;
    one.read([&](const Row& row) {
        order.push_back(row.point);
        first_lanes += row.keys.find("\"vector.lanes\":16") != std::string::npos ? 'a' : 'b';
    });
    CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
    CHECK(first_lanes == "aaabbb");
}

TEST_CASE("a database of another format is refused in a line that says what to do") {
    const TemporaryFolder temp;
    const Points points = cross_product({"engine.rows=1,2"});
    (void)Database::open_for_sweep(temp.file("db"), {"1", "{}", "0", "{}", points.keys}, points, {}, false);
    Connection(temp.file("db"), Access::Write)
        .execute("UPDATE sweep SET value = 'contraflow-sweep/1' WHERE name = 'format'");
    CHECK_THROWS_WITH(Database::open(temp.file("db")),
                      temp.file("db") +
                          ": is of format \"contraflow-sweep/1\", not contraflow-sweep/2; "
                          "expected another database, or the program that made it");
}
