// The instruction sets that the packages have code for. A package holds each program once for every
// level; what the user calls is the v2 program, which replaces itself with the best one that this
// processor runs. The environment variable KIBITZ_CPU names another level, for tests.
//
//   RunForThisProcessor("kibitz", argv);    // Comes back only where there is nothing better.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kibitz {

// x86-64-v2 to v4 as compilers define them: v3 has AVX2, v4 has AVX-512.
enum class CpuLevel : uint8_t { kV2, kV3, kV3Vnni, kV4, kV4Vnni };

// The slowest first. Folders and KIBITZ_CPU use these names, and so does cmake/KibitzLevels.cmake.
inline constexpr std::pair<std::string_view, CpuLevel> kCpuLevels[] = {
    {"v2", CpuLevel::kV2},
    {"v3", CpuLevel::kV3},
    {"v3-vnni", CpuLevel::kV3Vnni},
    {"v4", CpuLevel::kV4},
    {"v4-vnni", CpuLevel::kV4Vnni}};

// Whether this processor and this system run a level's code. v2 is taken for granted.
bool Runs(CpuLevel level);

// The level whose program to run when KIBITZ_CPU says `asked` ("" when it is not set): the best
// that runs. Throws Error when it is no level, or one that does not run here.
CpuLevel ChosenLevel(std::string_view asked);

// Replaces this process with the program of the chosen level, in cpu/LEVEL of this program's folder
// or of ../lib/kibitz. Comes back where the level is v2; where it is not installed, the next lower
// one counts.
void RunForThisProcessor(const std::string& program, char** argv);

}  // namespace kibitz
