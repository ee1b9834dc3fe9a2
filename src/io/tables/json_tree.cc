#include "io/tables/json_tree.h"

#include <string>

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;

// At most `limit` bytes, not cutting a character in two.
std::string CutText(std::string_view text, size_t limit) {
  if (limit == 0 || text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return std::string(text.substr(0, limit)) + "...";
}

}  // namespace

Json ToTree(const JsonValue& value, size_t limit) {
  switch (value.kind()) {
    case JsonKind::kMissing:
    case JsonKind::kNull:
      return {};
    case JsonKind::kBool:
      return value.Bool();
    case JsonKind::kInt:
      return value.Int();
    case JsonKind::kDouble:
      return value.Double();
    case JsonKind::kString:
      return CutText(value.String(), limit);
    case JsonKind::kArray: {
      Json list = Json::array();
      for (const JsonValue item : value.Items()) {
        if (limit > 0 && list.size() == limit) {
          list.push_back("...");
          break;
        }
        list.push_back(ToTree(item, limit));
      }
      return list;
    }
    case JsonKind::kObject: {
      Json object = Json::object();
      for (const JsonValue field : value.Fields()) {
        // operator[] would look through all keys for each.
        object.get_ref<Json::object_t&>().emplace_back(std::string(field.key()),
                                                       ToTree(field, limit));
      }
      return object;
    }
  }
  return {};
}

}  // namespace kibitz::io
