#include "config/address_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "common/integer_math.h"
#include "config/values.h"

namespace contraflow::config {

namespace {

struct Name {
    const char* text;
    DramField field;
};
constexpr std::array kNames{Name{"ro", DramField::Row}, Name{"ra", DramField::Rank}, Name{"bg", DramField::BankGroup},
                            Name{"ba", DramField::Bank}, Name{"co", DramField::Column}};
constexpr int kMaxBits = 32;

const AddressOrder& order_a() {
    static const AddressOrder order{
        {DramField::Row}, {DramField::Rank}, {DramField::BankGroup}, {DramField::Bank}, {DramField::Column}};
    return order;
}

const AddressOrder& order_b() {
    static const AddressOrder order{
        {DramField::Row}, {DramField::Rank}, {DramField::Bank}, {DramField::Column}, {DramField::BankGroup}};
    return order;
}

const char* name_of(DramField field) {
    return std::find_if(kNames.begin(), kNames.end(), [=](const Name& name) { return name.field == field; })->text;
}

bool same(const AddressOrder& a, const AddressOrder& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const MappingPart& x, const MappingPart& y) {
        return x.field == y.field && x.bits == y.bits;
    });
}

MappingPart parse_part(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string word = trimmed(text.substr(0, colon));
    const auto* name = std::find_if(kNames.begin(), kNames.end(), [&](const Name& n) { return word == n.text; });
    if (name == kNames.end()) {
        throw BadValue(word.empty() ? "has an empty field" : "\"" + word + "\" is no field");
    }
    MappingPart part{name->field, 0};
    if (colon != std::string::npos) {
        part.bits = static_cast<int>(parse_whole(trimmed(text.substr(colon + 1)), 1, kMaxBits));
    }
    return part;
}

}  // namespace

AddressOrder parse_address_order(const std::string& text) {
    if (text == "A" || text == "B") {
        return text == "A" ? order_a() : order_b();
    }
    AddressOrder order;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        order.push_back(parse_part(part));
    }
    for (const Name& name : kNames) {
        const auto rests = std::count_if(order.begin(), order.end(), [&](const MappingPart& part) {
            return part.field == name.field && part.bits == 0;
        });
        if (rests > 1) {
            throw BadValue(fmt::format("has {} twice without bits", name.text));
        }
    }
    if (order.empty()) {
        throw BadValue("has no value");
    }
    return order;
}

std::string address_order_text(const AddressOrder& order) {
    if (same(order, order_a())) {
        return "A";
    }
    if (same(order, order_b())) {
        return "B";
    }
    std::string text;
    for (const MappingPart& part : order) {
        text += (text.empty() ? "" : ",") + std::string(name_of(part.field)) +
                (part.bits == 0 ? "" : ":" + std::to_string(part.bits));
    }
    return text;
}

std::string address_order_problem(const DramConfig& dram) {
    for (const Name& name : kNames) {
        int given = 0;
        bool rest = false;
        for (const MappingPart& part : dram.mapping) {
            given += part.field == name.field ? part.bits : 0;
            rest = rest || (part.field == name.field && part.bits == 0);
        }
        const int wanted = log2_of(dram.values_of(name.field));
        if (rest ? given > wanted : given != wanted) {
            return fmt::format("{} has {} bits; expected {}", name.text, given, wanted);
        }
    }
    return "";
}

}  // namespace contraflow::config
