// The points of a sweep from its command line or CSV file, and the Pareto front over plain numbers.
#include <catch2/catch.hpp>
#include <random>

#include "contraflow/error.h"
#include "sweep/configuration.h"
#include "sweep/pareto.h"
#include "sweep/points.h"

using namespace contraflow;
using sweep::cross_product;
using sweep::pareto_front;

using Texts = std::vector<std::string>;

namespace {

Texts values_of(const std::string& spec) {
    Texts values;
    for (const Texts& point : cross_product({spec}).values) {
        values.push_back(point.front());
    }
    return values;
}

std::string problem(const Texts& specs) {
    try {
        (void)cross_product(specs);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("lists and ranges of values") {
    CHECK(values_of("tt.rank=8,16, 32") == Texts{"8", "16", "32"});
    CHECK(values_of("tt.rank=4:24:4") == Texts{"4", "8", "12", "16", "20", "24"});
    CHECK(values_of("tt.rank=4:10:4") == Texts{"4", "8"});
    CHECK(values_of("tt.rank=2:4") == Texts{"2", "3", "4"});
    CHECK(values_of("tt.rank=3:1:-1") == Texts{"3", "2", "1"});
    CHECK(values_of("tt.rank=5:5:1") == Texts{"5"});
    CHECK(values_of("train.lr=0.1:0.5:0.1") == Texts{"0.1", "0.2", "0.3", "0.4", "0.5"});  // no rounding on the way
    CHECK(values_of("network.flow=btt,mm") == Texts{"btt", "mm"});
    CHECK(values_of("schedule.split=off,on") == Texts{"off", "on"});
    CHECK(values_of("tt.out_modes=12,8,8;8,12,8") == Texts{"12,8,8", "8,12,8"});
    CHECK(values_of("device.file=devices/u50.ini,devices/kv260.ini").size() == 2);
}

TEST_CASE("the last key of a cross product varies fastest") {
    const sweep::Points points = cross_product({"tt.rank=1,2", "engine.cols=3,4"});
    CHECK(points.keys == Texts{"tt.rank", "engine.cols"});
    CHECK(points.values == std::vector<Texts>{{"1", "3"}, {"1", "4"}, {"2", "3"}, {"2", "4"}});
    CHECK(points.assignments(2) == Overrides{{"tt.rank", "2"}, {"engine.cols", "3"}});
}

TEST_CASE("points that have their contractions in common take their turns one after the other") {
    using Turns = std::vector<std::size_t>;
    CHECK(sweep::turns_of(cross_product({"vector.lanes=16,32", "engine.rows=1,2,3"})) == Turns{0, 2, 4, 1, 3, 5});
    CHECK(sweep::turns_of(cross_product({"tt.rank=1,2", "memory.banks=2,4"})) == Turns{0, 1, 2, 3});
    CHECK(sweep::turns_of(cross_product({"dma.request_latency_cycles=1,2", "vector.lanes=16,32"})) ==
          Turns{0, 1, 2, 3});
}

TEST_CASE("bad specifications name the argument") {
    for (const char* spec :
         {"tt.rank=", "tt.rank=1,", "tt.rank=1:2:0", "tt.rank=1:2:-1", "tt.rank=2:1", "tt.rank=::", "tt.rank=1:2:3:4",
          "tt.rank=0:3:1", "tt.rank=1:9e9:1", "tt.rank=1:99999999999999999999:1", "tt.rank=1:2000000000:1",
          "train.lr=0.00000000001:1:1", "tt.rank=8,8", "no.key=1", "network.flow=bt", "=1", ""}) {
        INFO(spec);
        CHECK(problem({spec}).rfind(std::string("--over ") + spec + ": ", 0) == 0);
    }
}

TEST_CASE("keys of a point read back as they were given") {
    const Overrides given{{"device.file", "a \"b\".ini"},
                          {"schedule.split", "off"},
                          {"train.lr", "0.005"},
                          {"tt.out_modes", "12,8,8"},
                          {"tt.rank", "08"}};
    Overrides expected = given;
    expected.back().second = "8";
    CHECK(sweep::assignments_of(sweep::keys_json(given)) == expected);
    CHECK(sweep::keys_json({{"tt.rank", "8"}, {"engine.cols", "3"}}) ==
          sweep::keys_json({{"engine.cols", "3"}, {"tt.rank", "08"}}));
}

TEST_CASE("a Pareto front holds what nothing dominates, and all of equal points") {
    using Costs = std::vector<std::vector<double>>;
    using Front = std::vector<std::size_t>;
    CHECK(pareto_front({}).empty());
    CHECK(pareto_front(Costs{{1, 2}, {2, 1}, {2, 2}, {1, 2}}) == Front{0, 1, 3});
    CHECK(pareto_front(Costs{{3}, {1}, {2}, {1}}) == Front{1, 3});
    CHECK(pareto_front(Costs{{1, 5}, {1, 4}}) == Front{1});

    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
        Costs costs(60, std::vector<double>(1 + random() % 4));
        for (auto& row : costs) {
            for (double& cost : row) {
                cost = static_cast<double>(random() % 8);
            }
        }
        Front expected;
        for (std::size_t i = 0; i < costs.size(); ++i) {
            bool beaten = false;
            for (const auto& other : costs) {
                bool nowhere_larger = true;
                bool smaller = false;
                for (std::size_t k = 0; k < other.size(); ++k) {
                    nowhere_larger = nowhere_larger && other[k] <= costs[i][k];
                    smaller = smaller || other[k] < costs[i][k];
                }
                beaten = beaten || (nowhere_larger && smaller);
            }
            if (!beaten) {
                expected.push_back(i);
            }
        }
        CHECK(pareto_front(costs) == expected);
    }
}
