// What a file or a folder held when a run began. A run keeps it with its settings; a resume
// compares it with the files it finds, so that an input which was replaced in between is noticed.
//
//   const Json now = FingerprintOf("evals.parquet");
//   if (auto change = FingerprintChange(kept, now); !change.empty()) throw Error("{}", change);
//
// Up to 256 MB of content are hashed whole. Of more, the first and the last megabyte of each file
// and blocks spread evenly between them. Names count without their folder and times not at all: a
// copy on another machine has the same fingerprint.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace kibitz::io {

// {"name": "evals.parquet", "bytes": 812, "hash": "0123456789abcdef"}; of a folder with all files
// below it, also "files", their number. Throws Error when something cannot be read.
nlohmann::ordered_json FingerprintOf(const std::string& path);

// A JSON array of them; the 256 MB are for all together.
nlohmann::ordered_json FingerprintsOf(std::span<const std::string> paths);

// The first difference, for people: "evals.parquet: its content changed (812 bytes)"; "" when there
// is none. Fingerprints of earlier versions have no hash: then names and sizes are compared.
std::string FingerprintChange(const nlohmann::ordered_json& before,
                              const nlohmann::ordered_json& now);

// The hash alone: 64 bits, the same on all machines.
uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0);

}  // namespace kibitz::io
